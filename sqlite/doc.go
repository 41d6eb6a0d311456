// Package sqlite keeps the outbox, the inbox and all that belongs to them in one SQLite file. The
// file is its own (Open), or the program's database (Attach), in tables with the prefix hf_.
//
//	db, err := sqlite.Attach(ctx, handle, sqlite.Options{Source: "shop"})
//	db.Do(ctx, func(ctx context.Context, tx *sqlite.Tx) error { … }) // a transaction; tx is an outbox
//	db.In(tx).Enqueue(ctx, m)                                        // in a *sql.Tx of the program's
//	db.Inbox()                                                       // handlers that run once per message
//
// The DB is the Store and the Lanes of a holdfast.Dispatcher, and the Outbox and the Inbox of a
// holdfast.Sweeper. The package includes the driver modernc.org/sqlite, and registers it with
// database/sql as "sqlite".
//
// What it promises: when a call returns without an error, its effect is on disk (journal_mode=WAL,
// synchronous=FULL, both read back when the file is opened). Calls of many goroutines share
// commits, so durability costs one sync per group and not one per message. A claim belongs to one
// owner; a late settlement changes nothing. A process that dies at any point loses nothing that it
// acknowledged, and its claims come back when the file is opened again.
//
// How it works: one goroutine, the writer, has the only connection that writes. In the program's
// database it borrows a connection of the pool.
//
//	Enqueue, Settle, …          Do, handlers             Claim
//	      │ queue                    │ turn                 │
//	      ▼                          ▼                      ▼
//	┌─ writer: take all that waits ─ one transaction ─ commit ─ answer ─ turns ─ claims ─┐
//	└──────────────────────────────── next round ◄──────────────────────────────────────┘
//
// In the program's database, others commit too. The writer learns of their commits at the start of
// each transaction, and ten times a second (start_counters.go).
//
// Fresh messages reach the dispatcher from memory, after their commit (outbox_lane.go). The table
// is read only for what memory does not hold. Leases are in memory too, because a file has one
// owner (file_owner.go); in the program's database that is the process that dispatches
// (attach_handover.go). After an unclean stop, claims are written to disk for a while, so that a
// message that kills the process runs out of attempts instead of looping.
//
// When the disk is full (file_space.go), new messages are refused, but the ends of messages are
// still recorded, in the room that writer_admission.go finds. When there is room again, the store
// accepts messages by itself. A write or sync that failed is never acknowledged, nor is anything
// after it until the disk has proven itself (writer_commit.go). If the disk cannot, the store
// stops.
//
// Backup copies the file while all of this goes on, in steps on the writer's connection. Restore
// replaces a file that nobody has open with a copy.
//
// A damaged file stops nothing: it is set aside, and its sound content is salvaged into a new file
// (salvage_damage.go). A message that is not what was accepted is never sent (check_hash.go).
//
// DESIGN.md explains the hard parts: the writer, claims, the time after an unclean stop, salvage.
//
// What it does not promise: that data survives a disk that dies, or a power cut with
// Options.Normal.
package sqlite
