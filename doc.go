// Package holdfast moves messages between programs that cannot rely on the
// network: an outbox that takes a message durably and delivers it when it
// can, and an inbox that gives each message one effect however often it
// arrives.
//
// A complete program, with the outbox in the program's own database:
//
//	package main
//
//	import (
//		"context"
//		"database/sql"
//		"fmt"
//		"os"
//		"os/signal"
//
//		"github.com/holdfast-mq/holdfast"
//		"github.com/holdfast-mq/holdfast/sqlite"
//	)
//
//	type OrderApproved struct{ Order int }
//
//	func (OrderApproved) Endpoint() string { return "OrderApproved" }
//
//	func main() {
//		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
//		defer stop()
//		shop := must(sql.Open("sqlite", "file:shop.db?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"))
//		defer shop.Close()
//		must(shop.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS orders (id INTEGER)"))
//		db := must(sqlite.Attach(ctx, shop, sqlite.Options{Source: "shop"}))
//		defer db.Close()
//
//		must(0, db.Do(ctx, func(ctx context.Context, tx *sqlite.Tx) error { // both commit, or neither does
//			if _, err := tx.ExecContext(ctx, "INSERT INTO orders VALUES (42)"); err != nil {
//				return err
//			}
//			return holdfast.Send(ctx, tx, "inventory", OrderApproved{42})
//		}))
//
//		d := &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{
//			"inventory": {Deliverer: holdfast.DelivererFunc(deliver)},
//		}}
//		must(0, d.Run(ctx)) // until Ctrl-C
//	}
//
//	func deliver(_ context.Context, m holdfast.Message) (holdfast.Receipt, error) { // an error: it is tried again
//		fmt.Printf("%s %s\n", m.Endpoint, m.Payload)
//		return holdfast.Receipt{}, nil
//	}
//
//	func must[T any](v T, err error) T {
//		if err != nil {
//			panic(err)
//		}
//		return v
//	}
//
// The other side receives in an inbox, whose handlers run once per message:
//
//	inbox := db.Inbox()
//	err := holdfast.Register(inbox, func(ctx context.Context, tx *sqlite.Tx, p OrderApproved) error {
//		_, err := tx.ExecContext(ctx, "UPDATE stock SET reserved = reserved + 1 WHERE article = ?", p.Order)
//		return err // an error undoes it all, and the sender tries again
//	})
//
// inbox is a [Receiver]: package transport serves it over HTTP, and in one
// process the sender's route is DelivererFunc(inbox.Receive).
//
// # Promises
//
//   - A call that accepts a message returns after the message is on disk.
//   - Nothing that was accepted vanishes: every message ends delivered, or stays
//     visible to people as parked, expired or discarded.
//   - Delivery is at least once, every attempt carries the same id, and an
//     inbox runs its handler once per (source, id) for as long as it
//     remembers ids.
//   - State changes name the state they start from, so no background pass
//     overwrites a person's decision.
//   - A destination that is down costs the others nothing.
//
// What it does not promise: order between messages without a common ordering
// key, exactly-once effects in systems that do not deduplicate, and survival
// of a disk that dies.
//
// # Parts
//
// A store (package sqlite) keeps messages, in a file of its own
// (sqlite.Open) or in the program's database (sqlite.Attach). A [Dispatcher]
// hands them to a [Deliverer] per destination, in lanes, by a [RetryPolicy]. A
// [Sweeper] expires and purges. An [Inbox] or [Endpoints] is the Receiver on
// the other side. Package wire defines the bytes between the two, and package
// transport sends them. Package holdfasttest helps programs to test what they
// send and handle. Two verbs hold it together: Deliver is the way out, Receive
// is the way in.
//
// A program runs a Dispatcher for what it sends, and beside it a Sweeper, whose
// Retention says how long delivered messages stay. Both block until their
// context ends:
//
//	go sweeper.Run(ctx)
//	err := dispatcher.Run(ctx)
package holdfast
