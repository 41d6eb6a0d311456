package fanout

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// In no period of Per do more than Count calls begin, and who is told to wait has taken no turn.
func TestARateIsKept(t *testing.T) {
	t.Parallel()
	var l limiter
	now := time.Unix(1_000_000, 0)
	var got []time.Duration
	for _, after := range []time.Duration{0, time.Second, 2 * time.Second, 2 * time.Second, time.Minute, time.Minute, 10 * time.Minute} {
		got = append(got, l.take(Rate{Count: 2, Per: time.Minute}, now.Add(after)))
	}
	got = append(got, l.take(Rate{Count: 1, Per: time.Second}, now))
	if d := cmp.Diff(got, []time.Duration{0, 0, 58 * time.Second, 58 * time.Second, 0, time.Second, 0, 0}); d != "" {
		t.Errorf("(-got +want):\n%s", d)
	}
}

// held is a store with one subscription.
type held struct {
	Store

	mu sync.Mutex
	s  Subscription
}

func (h *held) now() Subscription {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.s
}

func (h *held) become(f func(s *Subscription)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.s.Version++
	f(&h.s)
}

func (h *held) Version(context.Context) (int64, error)                     { return h.now().Version, nil }
func (h *held) TopicsSince(context.Context, int64, int64) ([]Topic, error) { return nil, nil }
func (h *held) Usual(context.Context) (Usual, error)                       { return Usual{}, nil }
func (h *held) SubscriptionsSince(context.Context, int64, int64, int) ([]Subscription, error) {
	return []Subscription{h.now()}, nil
}

// A message that waits long for its turn goes back. One that waits a moment is not sent once its
// subscription is paused, and takes the turn that a raised rate gives it.
func TestATurnFollowsTheSubscription(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		h := &held{s: Subscription{ID: "shop", Version: 1, Topics: []string{"*"}, Settings: Settings{URL: "https://shop.example", Rate: &Rate{Count: 1, Per: time.Hour}}}}
		sent := 0
		c := &courier{id: "shop", routes: &Routes{Book: NewBook(h, nil), Gone: func(error) bool { return false }}, to: holdfast.DelivererFunc(func(context.Context, holdfast.Message) (holdfast.Receipt, error) {
			sent++
			return holdfast.Receipt{}, nil
		})}
		is := func(code string, rest time.Duration) {
			t.Helper()
			began := time.Now()
			_, err := c.Deliver(t.Context(), holdfast.Message{})
			f := holdfast.AsFailure(err)
			if err == nil {
				f = &holdfast.Failure{Outcome: holdfast.NotStarted}
			}
			if f.Outcome != holdfast.NotStarted || f.Code != code || f.RetryAfter != rest || time.Since(began) > mostTurn {
				t.Errorf("after %s: %v, %q, rest %s; want %q, rest %s", time.Since(began), f.Outcome, f.Code, f.RetryAfter, code, rest)
			}
		}
		is("", 0)
		is("rate", mostRest)
		h.become(func(s *Subscription) { s.Rate = &Rate{Count: 1, Per: 1500 * time.Millisecond} })
		time.Sleep(freshFor)
		is("", 0)
		is("", 0) // after a moment
		time.AfterFunc(time.Millisecond, func() { h.become(func(s *Subscription) { s.State = Paused }) })
		is("paused", 0)
		if sent != 3 {
			t.Errorf("%d were sent, want 3", sent)
		}
	})
}
