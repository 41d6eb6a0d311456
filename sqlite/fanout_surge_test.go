package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// The words of an event surge, besides saidFailed and saidDelivered.
const (
	saidPublished = "published" // an event that was answered
	saidAttempted = "attempted" // a message that a subscriber got
)

// eventTopic is what an event surge publishes to, and eventSubscribers who subscribe to it.
const eventTopic = "orders"

func eventSubscribers() []string { return []string{"a", "b", "c"} }

func eventSlots() map[string]int {
	slots := map[string]int{}
	for _, id := range eventSubscribers() {
		slots[fanout.Lane(id)] = 100
	}
	return slots
}

// eventSurge is a process that publishes events and delivers their messages until the power is gone.
func eventSurge(args []string) {
	ctx := context.Background()
	db, err := sqlite.Open(ctx, args[0], sqlite.Options{Source: "test"})
	must(err)
	s := &surging{db: db, prefix: args[1]}
	book := fanout.NewBook(nodestore.New(db, nil).Fanout, nil)
	if _, found, err := book.Topic(ctx, eventTopic); err != nil || !found {
		must(err)
		_, err = book.Store().PutTopic(ctx, fanout.Topic{Name: eventTopic}, "test")
		must(err)
		for _, id := range eventSubscribers() {
			sub := fanout.Subscription{ID: id, Topics: []string{eventTopic}, Filter: []byte("{}"), Settings: fanout.Settings{URL: "https://example.com/"}}
			_, err := book.Store().PutSubscription(ctx, sub, "test")
			must(err)
		}
	}
	say("ready")
	publisher := &fanout.Publisher{Bundles: db, Book: book, Source: "test"}
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(s.until(func(i int) error {
			id := fmt.Sprintf("%s-%d-%d", s.prefix, n, i)
			done, err := publisher.Publish(ctx, fanout.Event{ID: holdfast.ID(id), Topic: eventTopic, Data: []byte(`{}`)})
			if err == nil && (done.Matched != len(eventSubscribers()) || done.Duplicate) {
				err = fmt.Errorf("%s: %+v", id, done)
			}
			if err == nil {
				say(saidPublished, id)
			}
			return err
		}))
	}
	all.Go(s.until(func(int) error {
		b, err := db.Claim(ctx, eventSlots())
		if err != nil {
			return err
		}
		list := make([]holdfast.Settlement, len(b.Claims))
		for i, c := range b.Claims {
			say(saidAttempted, c.Message.ID)
			list[i] = settlement(c, holdfast.Delivered)
		}
		if _, err := db.Settle(ctx, list...); err != nil {
			return err
		}
		for _, c := range b.Claims {
			say(saidDelivered, c.Message.ID)
		}
		return nil
	}))
	all.Wait()
	os.Exit(1) // without a word to the store: it was cut off from its disk
}
