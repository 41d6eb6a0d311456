package holdfast_test

import (
	"context"
	"fmt"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// A handler's effect and the memory of the message's id are one commit: a
// repeat has no second effect, and gets the first answer.
func ExampleInbox() {
	ctx := context.Background()
	db, end := openExample(ctx)
	defer end()

	m := holdfast.Message{ID: "order-42", Source: "shop", Endpoint: "OrderApproved", Payload: []byte(`{"order":42}`)}
	for range 2 {
		receipt, err := db.Inbox().Process(ctx, m, func(_ context.Context, _ *sqlite.Tx, m holdfast.Message) ([]byte, error) {
			fmt.Printf("reserve %s\n", m.Payload)
			return []byte(`"reserved"`), nil
		})
		fmt.Printf("%s duplicate=%t %v\n", receipt.Response, receipt.Duplicate, err)
	}
	// Output:
	// reserve {"order":42}
	// "reserved" duplicate=false <nil>
	// "reserved" duplicate=true <nil>
}

// With handlers registered, an inbox is a Receiver. What can never succeed is
// a permanent failure: the sender parks the message.
func ExampleRegister() {
	ctx := context.Background()
	db, end := openExample(ctx)
	defer end()

	inbox := db.Inbox()
	must(holdfast.Register(inbox, func(_ context.Context, _ *sqlite.Tx, p OrderApproved) error {
		fmt.Println("reserve order", p.Order)
		return nil
	}))
	for _, m := range []holdfast.Message{
		{ID: "1", Source: "shop", Endpoint: "OrderApproved", Payload: []byte(`{"order":42}`)},
		{ID: "2", Source: "shop", Endpoint: "OrderApproved", Payload: []byte(`{"order":"many"}`)},
		{ID: "3", Source: "shop", Endpoint: "NoSuch", Payload: []byte(`{}`)},
	} {
		if _, err := inbox.Receive(ctx, m); err != nil {
			f := holdfast.AsFailure(err)
			fmt.Println(m.ID, f.Outcome, f.Reason)
		}
	}
	// Output:
	// reserve order 42
	// 2 permanent undecodable
	// 3 permanent no_endpoint
}

// Handlers that choose it share one transaction, and with it one sync of the
// disk. One that fails is undone by itself.
func ExampleInbox_ProcessBatch() {
	ctx := context.Background()
	db, end := openExample(ctx)
	defer end()

	var ms []holdfast.Message
	for _, id := range []holdfast.ID{"a", "b", "a", "c"} {
		ms = append(ms, holdfast.Message{ID: id, Source: "shop", Endpoint: "Count"})
	}
	results := db.Inbox().ProcessBatch(ctx, ms, func(_ context.Context, _ *sqlite.Tx, m holdfast.Message) ([]byte, error) {
		if m.ID == "b" {
			return nil, &holdfast.Failure{Code: "busy"}
		}
		return []byte("counted " + string(m.ID)), nil
	})
	for _, r := range results {
		fmt.Printf("%s duplicate=%t %v\n", r.Receipt.Response, r.Receipt.Duplicate, r.Err)
	}
	// Output:
	// counted a duplicate=false <nil>
	//  duplicate=false busy
	// counted a duplicate=true <nil>
	// counted c duplicate=false <nil>
}

// In one process, a message goes from an outbox to an inbox by a call: each
// has its own file here, and what lies between them cannot be lost.
func ExampleDelivererFunc() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	shop, end := openExample(ctx)
	defer end()
	warehouse, end := openExample(ctx)
	defer end()

	inbox := warehouse.Inbox()
	must(holdfast.Register(inbox, func(_ context.Context, _ *sqlite.Tx, p OrderApproved) error {
		fmt.Println("reserve order", p.Order)
		stop()
		return nil
	}))
	must(holdfast.Send(ctx, shop, "warehouse", OrderApproved{42}))
	d := &holdfast.Dispatcher{Store: shop, Routes: map[string]holdfast.Route{
		"warehouse": {Deliverer: holdfast.DelivererFunc(inbox.Receive)},
	}}
	must(d.Run(ctx))
	// Output:
	// reserve order 42
}
