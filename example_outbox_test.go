package holdfast_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// OrderApproved names its endpoint once, for both ends.
type OrderApproved struct {
	Order int `json:"order"`
}

func (OrderApproved) Endpoint() string { return "OrderApproved" }

// An order and the message that tells of it commit together, in the program's
// own database; a dispatcher delivers the message.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	handle, end := openShop(ctx) // a *sql.DB with journal_mode=WAL and synchronous=FULL
	defer end()
	db, err := sqlite.Attach(ctx, handle, sqlite.Options{Source: "shop"})
	must(err)
	defer db.Close()

	err = db.Do(ctx, func(ctx context.Context, tx *sqlite.Tx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO orders VALUES (42)"); err != nil {
			return err
		}
		return holdfast.Send(ctx, tx, "inventory", OrderApproved{42})
	})
	must(err)

	d := &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{
		"inventory": {Deliverer: deliverer(func(m holdfast.Message) error {
			fmt.Printf("%s %s\n", m.Endpoint, m.Payload)
			stop()
			return nil
		})},
	}}
	must(d.Run(ctx))
	fmt.Println("waiting:", db.Counts().Pending)
	// Output:
	// OrderApproved {"order":42}
	// waiting: 0
}

// In a transaction of the program's own, a message exists if it commits.
func Example_yourTransaction() {
	ctx := context.Background()
	handle, end := openShop(ctx)
	defer end()
	db, err := sqlite.Attach(ctx, handle, sqlite.Options{Source: "shop"})
	must(err)
	defer db.Close()

	approve := func(order int, stock error) error {
		tx, err := handle.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // after a commit it does nothing
		if _, err := tx.ExecContext(ctx, "INSERT INTO orders VALUES (?)", order); err != nil {
			return err
		}
		if err := holdfast.Send(ctx, db.In(tx), "inventory", OrderApproved{order}); err != nil {
			return err
		}
		if stock != nil {
			return stock
		}
		return tx.Commit()
	}
	fmt.Println(approve(41, errors.New("out of stock")))
	fmt.Println(approve(42, nil))

	page, err := db.List(ctx, holdfast.Query{Destination: "inventory"})
	must(err)
	for _, r := range page.Records {
		full, err := db.Get(ctx, r.Message.ID)
		must(err)
		fmt.Printf("%s %s\n", full.State, full.Message.Payload)
	}
	// Output:
	// out of stock
	// <nil>
	// pending {"order":42}
}

// Send takes any Enqueuer: a store, which commits at once, or a transaction.
// Enqueue takes what else a Message can say, such as an id of the caller's.
func ExampleSend() {
	ctx := context.Background()
	db, end := openExample(ctx)
	defer end()

	must(holdfast.Send(ctx, db, "inventory", OrderApproved{42}))
	m := holdfast.Message{ID: "order-43", Destination: "inventory", Endpoint: "OrderApproved", Payload: []byte(`{"order":43}`)}
	for range 2 {
		receipts, err := db.Enqueue(ctx, m)
		must(err)
		fmt.Println(receipts[0].ID, receipts[0].State, receipts[0].Duplicate)
	}
	fmt.Println("waiting:", db.Counts().Pending)
	// Output:
	// order-43 pending false
	// order-43 pending true
	// waiting: 2
}
