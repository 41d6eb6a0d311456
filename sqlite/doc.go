// Package sqlite keeps the outbox, the inbox and all that belongs to them in
// one SQLite file: one of its own (Open), or the program's database (Attach),
// in tables with the prefix hf_.
//
//	db, err := sqlite.Attach(ctx, handle, sqlite.Options{Source: "shop"})
//	db.Do(ctx, func(ctx context.Context, tx *sqlite.Tx) error { … }) // a transaction; tx is an outbox
//	db.In(tx).Enqueue(ctx, m)                                        // in a *sql.Tx of the program's
//	db.Inbox()                                                       // handlers that run once per message
//
// The DB is the Store of a holdfast.Dispatcher, its Lanes, and the Outbox and
// Inbox of a holdfast.Sweeper. The driver modernc.org/sqlite comes along, and
// is registered with database/sql as "sqlite".
//
// What it promises: a call that returns without error is on disk
// (journal_mode=WAL, synchronous=FULL, both read back when the file is
// opened). Calls of many goroutines share commits, so durability costs one
// sync per group and not one per message. A claim belongs to one owner;
// whoever settles late changes nothing. A process that dies at any point
// loses nothing that it acknowledged, and its claims come back when the file
// is opened again.
//
// How it works: one goroutine, the writer, has the only connection that
// writes; in the program's database it borrows one of the pool.
//
//	Enqueue, Settle, …          Do, handlers             Claim
//	      │ queue                    │ turn                 │
//	      ▼                          ▼                      ▼
//	┌─ writer: take all that waits ─ one transaction ─ commit ─ answer ─ turns ─ claims ─┐
//	└──────────────────────────────── next round ◄──────────────────────────────────────┘
//
// What others commit to the program's database the writer learns at the start
// of each transaction, and ten times a second (start_counters.go).
//
// Fresh messages reach the dispatcher from memory, after their commit
// (outbox_lane.go); the table is asked only for what memory does not hold. Leases are
// in memory too, because a file has one owner (file_owner.go), in the program's
// database the process that dispatches (attach_handover.go): after an
// unclean stop, claims are written to disk for a while, so that a message
// that kills the process runs out of attempts instead of looping.
//
// A full disk (file_space.go): what is new is refused, and what ends a message is
// recorded all the same, in the room that writer_admission.go finds; it goes on by
// itself when there is room. A write or sync that failed is never
// acknowledged, nor is anything after it until the disk has proven itself
// (writer_commit.go); a disk that cannot stops the store.
//
// Backup copies the file while all of this goes on, in steps on the writer's
// connection; Restore puts a copy in the place of a file that nobody has open.
//
// A damaged file stops nothing: it is set aside, and what is sound in it is
// salvaged into a new one (salvage_damage.go). A message that is not what was accepted
// is never sent (check_hash.go).
//
// DESIGN.md explains the hard parts: the writer, claims, the time after an unclean stop,
// salvage.
//
// What it does not promise: survival of a disk that dies, or of a power cut
// with Options.Normal.
package sqlite
