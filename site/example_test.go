package site_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/site"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// What the target says at once is the answer; what it cannot take now is
// buffered; a notification leaves when its way is there.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	folder, err := os.MkdirTemp("", "site")
	must(err)
	defer func() { must(os.RemoveAll(folder)) }()
	db, err := sqlite.Open(ctx, filepath.Join(folder, "site.db"), sqlite.Options{})
	must(err)

	erp := holdfast.DelivererFunc(func(_ context.Context, m holdfast.Message) (holdfast.Receipt, error) {
		switch m.Endpoint {
		case "Book":
			return holdfast.Receipt{Response: []byte(`{"seat": 7}`)}, nil
		case "Cancel":
			return holdfast.Receipt{}, &holdfast.Failure{Outcome: holdfast.Permanent, Code: "http_409", Err: errors.New("it has left")}
		}
		return holdfast.Receipt{}, errors.New("busy")
	})
	s, err := site.New(site.Config{Store: db, Name: "plant-7", Destinations: map[string]site.Destination{
		"erp": {Category: holdfast.CategoryExternalSystem, Route: holdfast.Route{Deliverer: erp}},
	}})
	must(err)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()

	answer, err := s.CachedCall(ctx, site.Call{Destination: "erp", Endpoint: "Book", Payload: []byte(`{"order": 42}`)})
	fmt.Printf("%s %s %v\n", answer.State, answer.Response, err)

	_, err = s.CachedCall(ctx, site.Call{ID: "cancel-42", Destination: "erp", Endpoint: "Cancel"})
	if refused, ok := errors.AsType[*holdfast.RefusedError](err); ok {
		fmt.Println(refused.HTTPStatus(), refused.Text)
	}

	answer, err = s.CachedCall(ctx, site.Call{ID: "move-42", Destination: "erp", Endpoint: "Move"})
	fmt.Println(answer.Buffered, answer.Failure, err)
	o, err := s.Status(ctx, "move-42")
	fmt.Println(o.Status, o.Failures, err)

	id, err := s.Notify("operators").From(notify.Origin{Instance: "tank-4"}).Send(ctx, "Tank 4 is full", "Level 98 %.")
	must(err)
	standing, err := s.NotificationStatus(ctx, id)
	fmt.Println(standing.Status, err)

	stop()
	must(<-ended)
	must(db.Close())
	// Output:
	// delivered {"seat": 7} <nil>
	// 409 it has left
	// true busy <nil>
	// retrying 1 <nil>
	// forwarding <nil>
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
