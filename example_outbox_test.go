package holdfast_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// A message and the business row it tells of commit together, or neither
// does; a dispatcher delivers it.
func Example() {
	dir, _ := os.MkdirTemp("", "holdfast")
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	db, err := sqlite.Open(ctx, filepath.Join(dir, "shop.db"), sqlite.Options{Source: "shop"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()

	err = db.Do(ctx, func(ctx context.Context, tx *sqlite.Tx) error {
		if _, err := tx.ExecContext(ctx, `CREATE TABLE orders (id INTEGER)`); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO orders VALUES (42)`); err != nil {
			return err
		}
		_, err := tx.Enqueue(ctx, holdfast.Message{Destination: "inventory", Endpoint: "OrderApproved", Payload: []byte(`{"order": 42}`)})
		return err
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	d := &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{
		"inventory": {Deliverer: holdfast.DelivererFunc(func(_ context.Context, m holdfast.Message) (holdfast.Receipt, error) {
			fmt.Printf("%s %s\n", m.Endpoint, m.Payload)
			stop()
			return holdfast.Receipt{ID: m.ID}, nil
		})},
	}}
	if err := d.Run(ctx); err != nil {
		fmt.Println(err)
	}
	fmt.Println("waiting:", db.Counts().Pending)
	// Output:
	// OrderApproved {"order": 42}
	// waiting: 0
}

// A handler's effect and the memory of the message's id are one commit: a
// repeat has no second effect, and gets the first answer.
func ExampleInbox() {
	dir, _ := os.MkdirTemp("", "holdfast")
	defer func() { _ = os.RemoveAll(dir) }()
	ctx := context.Background()
	db, err := sqlite.Open(ctx, filepath.Join(dir, "warehouse.db"), sqlite.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()

	m := holdfast.Message{ID: "order-42", Source: "shop", Endpoint: "OrderApproved", Payload: []byte(`{"order": 42}`)}
	for range 2 {
		receipt, err := db.Inbox().Process(ctx, m, func(_ context.Context, _ *sqlite.Tx, m holdfast.Message) ([]byte, error) {
			fmt.Printf("reserve %s\n", m.Payload)
			return []byte(`"reserved"`), nil
		})
		fmt.Printf("%s duplicate=%t %v\n", receipt.Response, receipt.Duplicate, err)
	}
	// Output:
	// reserve {"order": 42}
	// "reserved" duplicate=false <nil>
	// "reserved" duplicate=true <nil>
}
