package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	hf "github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/webhook"
	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/internal/keyring"
	"github.com/holdfast-mq/holdfast/internal/run"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/nodestore"
)

// Common values of all events of the measures.
const (
	eventTopic = "orders"
	eventType  = "order.created"
	eventSize  = 1 << 10 // bytes of the data
	eventFan   = 10      // subscriptions that an event is for
)

var eventData = func() []byte {
	const head, tail = `{"n":3,"total":12.5,"price":0.25,"name":"Filler 3","text":"`, `"}`
	return []byte(head + strings.Repeat("x", eventSize-len(head)-len(tail)) + tail)
}()

func event() fanout.Event {
	return fanout.Event{
		Topic: eventTopic, Type: eventType, Subject: "A-17", Data: eventData, Attributes: map[string]string{"country": "nl", "priority": "5"},
	}
}

// hubStore is a store of either kind.
type hubStore interface {
	hf.Store
	hf.Lanes
	hf.Bundler
	hf.Outbox
	hf.InboxLog
	side.Base
	Close() error
}

// hub takes events and keeps subscriptions, as a node does. Secrets are sealed.
type hub struct {
	db        hubStore
	ring      *keyring.Ring
	book      *fanout.Book
	publisher *fanout.Publisher
}

func openHub(ctx context.Context, dir string) (*hub, error) {
	db, err := openStore(ctx, dir)
	if err != nil {
		return nil, err
	}
	h, err := newHub(db)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return h, nil
}

func newHub(db hubStore) (*hub, error) {
	ring, err := keyring.New(make([]byte, keyring.KeySize))
	if err != nil {
		return nil, err
	}
	book := fanout.NewBook(nodestore.New(db, nil).Fanout, nil)
	return &hub{db: db, ring: ring, book: book, publisher: &fanout.Publisher{Bundles: db, Book: book, Source: "bench"}}, nil
}

func (h *hub) Close() error { return h.db.Close() }

// publish publishes one event, which must be for eventFan subscriptions.
func (h *hub) publish(ctx context.Context) error {
	done, err := h.publisher.Publish(ctx, event())
	if err == nil && done.Matched != eventFan {
		err = fmt.Errorf("an event was for %d subscriptions, not %d", done.Matched, eventFan)
	}
	return err
}

// subscribe makes the topic, and eventFan subscriptions with secrets of their own at the addresses in turn.
func (h *hub) subscribe(ctx context.Context, addresses ...string) error {
	if _, err := h.book.Store().PutTopic(ctx, fanout.Topic{Name: eventTopic}, ""); err != nil {
		return err
	}
	for n := range eventFan {
		s := fanout.Subscription{ID: subscriptionID(n), Topics: []string{eventTopic}}
		s.URL = subscriberURL(addresses, n)
		sealed, err := h.ring.Seal(signing(s.ID), []byte(subscriberSecret(n)))
		if err != nil {
			return err
		}
		s.Secrets = []fanout.Secret{{Sealed: sealed}}
		if _, err := h.book.Store().PutSubscription(ctx, s, ""); err != nil {
			return err
		}
	}
	return nil
}

func subscriptionID(n int) string { return "subscription-" + strconv.Itoa(n) }

// fill publishes a backlog for subscribers at these addresses.
func (h *hub) fill(ctx context.Context, z sizes, to []string) error {
	if err := h.subscribe(ctx, to...); err != nil {
		return err
	}
	return h.publishAll(ctx, z)
}

func (h *hub) publishAll(ctx context.Context, z sizes) error {
	return crowdOf(publishers, z.webhooks/eventFan/publishers, func(int) error { return h.publish(ctx) })()
}

func signing(id string) keyring.Context {
	return keyring.Context{Table: "subscription", Row: id, Column: "signing"}
}

// deliver runs the dispatcher with a route for each subscription until stop is called.
func (h *hub) deliver(ctx context.Context) (stop func() error, err error) {
	sender, err := webhook.New(webhook.Settings{Addresses: []string{"127.0.0.0/8"}})
	if err != nil {
		return nil, err
	}
	routes := &fanout.Routes{
		Book: h.book, Dispatcher: &hf.Dispatcher{Store: h.db, Lanes: h.db, Grace: 50 * time.Millisecond},
		Schedule: fanout.DefaultSchedule(), Timeout: webhook.DefaultTimeout, Gone: func(err error) bool { return errors.Is(err, webhook.ErrGone) },
		Deliverer: func(ask func(ctx context.Context) (fanout.Subscription, error)) hf.Deliverer {
			return sender.Deliverer(func(ctx context.Context) (webhook.Target, error) {
				s, err := ask(ctx)
				if err != nil {
					return webhook.Target{}, err
				}
				return h.target(&s)
			})
		},
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- run.All(ctx, run.Part{Name: "subscriptions", Run: routes.Run}, run.Part{Name: "dispatcher", Run: routes.Dispatcher.Run})
	}()
	return func() error {
		defer sender.Close()
		cancel()
		return <-ended
	}, nil
}

func (h *hub) target(s *fanout.Subscription) (webhook.Target, error) {
	t := webhook.Target{URL: s.URL}
	for _, secret := range s.Secrets {
		plain, err := h.ring.Open(signing(s.ID), secret.Sealed)
		if err != nil {
			return t, err
		}
		t.Secrets = append(t.Secrets, webhook.Secret{Value: string(plain)})
	}
	return t, nil
}

// subscriberURL leads to subscriber n, whose path is its number.
func subscriberURL(addresses []string, n int) string {
	return "http://" + addresses[n%len(addresses)] + "/" + strconv.Itoa(n)
}

// subscriberKey returns the key of subscriber n.
func subscriberKey(n int) []byte { return fmt.Appendf(nil, "the key of subscriber number %3d", n) }

func subscriberSecret(n int) string {
	return "whsec_" + base64.StdEncoding.EncodeToString(subscriberKey(n))
}

// subscribed fills a store with count subscriptions, eventFan of which an event is for.
func subscribed(ctx context.Context, dir string, count int) (err error) {
	h, err := openHub(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	if _, err := h.book.Store().PutTopic(ctx, fanout.Topic{Name: eventTopic}, ""); err != nil {
		return err
	}
	const callers = 100
	if count < callers {
		return h.putSubscriptions(ctx, 0, count)
	}
	return crowdOf(callers, count/callers, func(n int) error { return h.putSubscriptions(ctx, n, n+1) })()
}

func (h *hub) putSubscriptions(ctx context.Context, from, to int) error {
	for n := from; n < to; n++ {
		s := fanout.Subscription{ID: fmt.Sprintf("subscription-%06d", n), Topics: []string{eventTopic, "returns"}, Filter: json.RawMessage(filterOf(n))}
		s.URL = subscriberURL([]string{"127.0.0.1:9"}, n)
		if _, err := h.book.Store().PutSubscription(ctx, s, ""); err != nil {
			return err
		}
	}
	return nil
}
