package fanout

import (
	"context"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Store keeps topics, subscriptions, the usual schedule and events. Its methods may be called concurrently. Each change of a
// topic or subscription has a version, and versions are committed in their order. A change must name the
// version that its author has seen, zero for something new; ErrState says that another change came
// first, ErrNotFound that what is to be deleted does not exist.
type Store interface {
	UsualStore
	FailingStore

	// Version returns the version of the last change; zero: there was none.
	Version(ctx context.Context) (int64, error)
	// TopicsSince returns the topics that have changed in versions above after, up to upTo, in that
	// order, with those that are gone.
	TopicsSince(ctx context.Context, after, upTo int64) ([]Topic, error)
	// SubscriptionsSince returns, of subscriptions that have changed in versions above after, what they were
	// in version upTo, at most limit, in the order of their versions, with those that are gone.
	SubscriptionsSince(ctx context.Context, after, upTo int64, limit int) ([]Subscription, error)

	// PutTopic makes or replaces a topic, and returns its version.
	PutTopic(ctx context.Context, t Topic, actor string) (version int64, err error)
	// DeleteTopic deletes a topic. Events and subscriptions that name it stay as they are.
	DeleteTopic(ctx context.Context, name string, version int64, actor string) error
	// PutSubscription makes or replaces a subscription, and returns its version.
	PutSubscription(ctx context.Context, s Subscription, actor string) (version int64, err error)
	// DeleteSubscription deletes a subscription, and the tokens of its subscriber. Its messages stay.
	DeleteSubscription(ctx context.Context, id string, version int64, actor string) error
	// SubscriptionAt returns a subscription as it was in a version. ErrNotFound: it did not exist then,
	// or no event that is kept can ask for that version.
	SubscriptionAt(ctx context.Context, id string, version int64) (Subscription, error)
	// SubscriptionsAt returns the subscriptions that existed in a version, by id, from the one behind
	// after on.
	SubscriptionsAt(ctx context.Context, version int64, after string, limit int) ([]Subscription, error)

	// Events returns events from the newest on, without their data.
	Events(ctx context.Context, q Query) ([]Stored, error)
	// EventsOf returns the events with an id, one for each source, without their data.
	EventsOf(ctx context.Context, id holdfast.ID) ([]Stored, error)
	// Data returns the data of an event.
	Data(ctx context.Context, event int64) ([]byte, error)
	// Deliveries returns the deliveries of an event, with those of its resends, from the one behind after on.
	Deliveries(ctx context.Context, event, after int64, limit int) ([]Delivery, error)
	// DeliveriesTo returns those to the subscriptions with the ids from first to last, by id.
	DeliveriesTo(ctx context.Context, event int64, first, last string) ([]Delivery, error)

	// PurgeEvents deletes some of the events that were received longer ago than keep and whose messages are
	// all purged, also those of their resends, from the one behind after on. next is where to go on; zero: there are no more.
	PurgeEvents(ctx context.Context, keep time.Duration, after int64) (purged int, next int64, err error)
	// PurgeVersions deletes some former versions of subscriptions for which no event can ask.
	PurgeVersions(ctx context.Context) (more bool, err error)
}

// Before returns the number behind the last event that was received before at. topic empty: of all.
func Before(ctx context.Context, s Store, topic string, at time.Time) (seq int64, err error) {
	newest, err := s.Events(ctx, Query{Topic: topic, Limit: 1})
	if err != nil || len(newest) == 0 {
		return 1, err
	}
	low, high := int64(1), newest[0].Seq+1 // what is below low came before
	for low < high {
		middle := high - (high-low)/2
		list, err := s.Events(ctx, Query{Topic: topic, Before: middle, Limit: 1})
		switch {
		case err != nil:
			return 0, err
		case len(list) == 0 || list[0].Received.Before(at):
			low = middle
		default:
			high = list[0].Seq
		}
	}
	return low, nil
}

// Query selects events.
type Query struct {
	Topic  string // empty: all
	Before int64  // Seq of the last one of the page before; zero: from the newest
	Limit  int
}
