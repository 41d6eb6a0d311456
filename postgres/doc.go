// Package postgres keeps the outbox, the inbox and all that belongs to them in a PostgreSQL
// database. Its tables have the prefix hf_. Any number of nodes can share them, and all are active.
//
//	db, err := postgres.Open(ctx, "postgres://…", postgres.Options{Source: "shop", Node: "shop-1"})
//	db.Do(ctx, func(ctx context.Context, tx *postgres.Tx) error { … }) // a transaction; tx is an outbox
//	db.In(tx).Enqueue(ctx, m)                                          // in a pgx.Tx of the program's own pool
//	db.InSQL(tx).Enqueue(ctx, m)                                       // in a *sql.Tx of the pgx driver
//	db.Inbox()                                                         // handlers that run once per message
//
// The DB is the Store of a holdfast.Dispatcher, its Lanes, and the Outbox and
// Inbox of a holdfast.Sweeper, as sqlite.DB is.
//
// What it promises: a call that returns without error is committed with synchronous_commit on.
// Concurrent calls share transactions. A claim belongs to one owner; a late settlement by another
// owner changes nothing. Each message goes to one of the nodes. When the lease of a dead node ends,
// its claimed messages are given back. The database's clock decides: a node's own clock is never
// stored or compared.
//
// How it works. An accepted message (hf_message) is never rewritten. One of two small rows holds
// its state: hf_queue while it is pending or claimed, hf_final afterwards. So claims and
// settlements touch one small table, whose size is the backlog and not the history
// (outbox_claim.go, outbox_settle.go).
//
//	Enqueue ─► group ─► one statement for all that waits ─► commit ─► answer, wake
//	Settle  ─► group ─► one statement per kind of outcome ─► commit ─► answer
//	Claim   ─► FOR UPDATE SKIP LOCKED, as many as there are free slots
//
// A node holds one lease, which it renews (node.go). Rows carry the node's owner number, which is
// new at each start, and the number of the claim.
//
// Messages of an ordering key become claimable one at a time, under an advisory lock on the key.
// Only short transactions of the store take that lock (outbox_key.go). A caller's transaction
// writes a keyed row without deciding whether it is claimable, and so never makes other
// transactions wait.
//
// Nodes wake each other by NOTIFY, at most once every few milliseconds, outside the transaction
// that wrote. A poll is the backstop (node_wake.go).
//
// DESIGN.md explains the hard parts: groups, claims, leases, deaths, commits in doubt.
package postgres
