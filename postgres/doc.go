// Package postgres keeps the outbox, the inbox and all that belongs to them in
// a PostgreSQL database, in tables with the prefix hf_, for any number of
// nodes that are all active.
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
// What it promises: a call that returns without error is committed with
// synchronous_commit on. Calls of many goroutines share transactions. A claim
// belongs to one owner; whoever settles late changes nothing. Of several nodes
// each message goes to one. A node that dies gives back what it had in hand
// when its lease ends. The database's clock decides: a node's own clock is
// never stored nor compared.
//
// How it works. What was accepted (hf_message) is never rewritten. Where it
// stands is said by one of two small rows: hf_queue while it waits or is in
// hand, hf_final afterwards. So claims and settlements touch one small table,
// whose size is the backlog and not the history (outbox_claim.go, outbox_settle.go).
//
//	Enqueue ─► group ─► one statement for all that waits ─► commit ─► answer, wake
//	Settle  ─► group ─► one statement per kind of outcome ─► commit ─► answer
//	Claim   ─► FOR UPDATE SKIP LOCKED, as many as there are free slots
//
// A node holds one lease, which it renews (node.go); rows carry its owner
// number and the number of the claim. Its owner number is new at each start.
//
// Messages of an ordering key are made claimable one at a time, under an
// advisory lock on the key that only short transactions of the store take
// (outbox_key.go): a caller's transaction writes a keyed row without deciding about
// it, and so never makes others wait.
//
// Nodes wake each other by NOTIFY, outside of the transaction that wrote, at
// most every few milliseconds; a poll is the backstop (node_wake.go).
//
// DESIGN.md explains the hard parts: groups, claims, leases, deaths, commits in doubt.
package postgres
