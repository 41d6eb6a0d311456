package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// A policy prints when each attempt is made, for people to check.
func ExampleRetryPolicy_Timetable() {
	fmt.Print(holdfast.DefaultRetry().Timetable(10))
	fmt.Print(holdfast.RetryPolicy{List: []time.Duration{time.Minute, time.Hour}, Attempts: holdfast.Unlimited}.Timetable(4))
	// Output:
	// attempt 1 at once
	// attempt 2 after 2s (+2s)
	// attempt 3 after 4s (+6s)
	// attempt 4 after 8s (+14s)
	// attempt 5 after 16s (+30s)
	// attempt 6 after 32s (+1m2s)
	// each wait up to 500ms longer
	// attempt 1 at once
	// attempt 2 after 1m0s (+1m0s)
	// attempt 3 after 1h0m0s (+1h1m0s)
	// attempt 4 after 1h0m0s (+2h1m0s)
	// … every 1h0m0s without end
}

// A failure says what it means: this one parks its message at once, and a
// callback is told. The message itself stays, to be tried again.
func ExampleDispatcher_onParked() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	db, end := openExample(ctx)
	defer end()

	d := &holdfast.Dispatcher{
		Store: db,
		Routes: map[string]holdfast.Route{"inventory": {Deliverer: deliverer(func(holdfast.Message) error {
			return &holdfast.Failure{Outcome: holdfast.Permanent, Code: "no_such_article", Err: errors.New("article 42 is unknown")}
		})}},
		OnParked: func(_ context.Context, e holdfast.Ended) error {
			fmt.Printf("%s for %s is parked: %s, %s\n", e.ID, e.Destination, e.Reason, e.Error)
			stop()
			return nil
		},
	}
	_, err := db.Enqueue(ctx, holdfast.Message{ID: "order-42", Destination: "inventory", Endpoint: "OrderApproved"})
	must(err)
	must(d.Run(ctx))
	again, err := db.Requeue(context.Background(), "order-42", holdfast.Requeue{Actor: "ann"})
	fmt.Println(again.State, again.Cycle, err)
	// Output:
	// order-42 for inventory is parked: permanent, article 42 is unknown
	// pending 2 <nil>
}

// What nobody claims in time expires; a sweeper finds it, and a callback of
// the dispatcher is told.
func ExampleDispatcher_onExpired() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	db, end := openExample(ctx)
	defer end()

	d := &holdfast.Dispatcher{Store: db, OnExpired: func(_ context.Context, e holdfast.Ended) error {
		fmt.Printf("%s for %s is %s after %d tries\n", e.ID, e.Destination, e.State, e.Tries)
		stop()
		return nil
	}}
	_, err := db.Enqueue(ctx, holdfast.Message{ID: "price-42", Destination: "board", Endpoint: "Price", TTL: time.Millisecond})
	must(err)
	swept := make(chan error, 1)
	go func() { swept <- (&holdfast.Sweeper{Outbox: db, Every: 10 * time.Millisecond}).Run(ctx) }()
	must(d.Run(ctx))
	must(<-swept)
	// Output:
	// price-42 for board is expired after 0 tries
}

// Messages of one ordering key go one after the other, in the order in which
// they were accepted, also past a failure; other messages do not wait.
func ExampleMessage_orderingKey() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	db, end := openExample(ctx)
	defer end()

	at := &holdfast.RetryPolicy{First: time.Millisecond, Jitter: -1}
	for _, id := range []holdfast.ID{"created", "paid", "shipped"} {
		_, err := db.Enqueue(ctx, holdfast.Message{ID: id, Destination: "billing", Endpoint: "Order", OrderingKey: "order-42", Retry: at})
		must(err)
	}
	failed := false
	d := &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"billing": {Deliverer: deliverer(func(m holdfast.Message) error {
		if !failed {
			failed = true
			fmt.Println(m.ID, "fails")
			return errors.New("busy")
		}
		fmt.Println(m.ID)
		if m.ID == "shipped" {
			stop()
		}
		return nil
	})}}}
	must(d.Run(ctx))
	// Output:
	// created fails
	// created
	// paid
	// shipped
}

// Routes come and go while the dispatcher runs. An attempt ends by the route that it
// began with; a deliverer can be closed once that is told.
func ExampleDispatcher_SetRoute() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	db, end := openExample(ctx)
	defer end()

	d := &holdfast.Dispatcher{Store: db}
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()

	to := func(which string, arrived chan holdfast.ID) holdfast.Route {
		return holdfast.Route{Limit: 2, Deliverer: deliverer(func(m holdfast.Message) error {
			fmt.Println(m.ID, "arrives at", which)
			arrived <- m.ID
			return nil
		})}
	}
	arrived := make(chan holdfast.ID)
	send := func(id holdfast.ID) {
		_, err := db.Enqueue(ctx, holdfast.Message{ID: id, Destination: "subscriber", Endpoint: "Event"})
		must(err)
	}

	send("first") // waits: there is no route
	_, err := d.SetRoute("subscriber", to("the old address", arrived))
	must(err)
	<-arrived
	former, err := d.SetRoute("subscriber", to("the new address", arrived))
	must(err)
	<-former // nothing goes to the old address any more
	send("second")
	<-arrived
	<-d.RemoveRoute("subscriber")
	send("third") // waits until there is a route again

	stop()
	must(<-ended)
	// Output:
	// first arrives at the old address
	// second arrives at the new address
}
