package holdfast_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// once fails the first attempt of a message called m, and takes the rest.
func once(f *holdfast.Failure, tries *atomic.Int64) holdfast.DelivererFunc {
	return func(_ context.Context, m holdfast.Message) (holdfast.Receipt, error) {
		if m.ID == "m" && tries.Add(1) == 1 {
			return holdfast.Receipt{}, f
		}
		return holdfast.Receipt{ID: m.ID, State: holdfast.Delivered}, nil
	}
}

// F1-06: what waits only because its destination was away, or because somebody
// asked for it, is due as soon as another message gets through.
func TestWhatWaitedForItsDestinationIsDueWhenThatWorks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		failure  holdfast.Failure
		wait     time.Duration // of the route's policy
		hastened bool
	}{
		"a proxy that said tomorrow": {holdfast.Failure{Code: "http_503", RetryAfter: 24 * time.Hour}, time.Second, true},
		"nobody was there":           {holdfast.Failure{Outcome: holdfast.Unreachable, Code: "connection_refused"}, time.Hour, true},
		"its own schedule":           {holdfast.Failure{Code: "http_500"}, time.Hour, false},
		"too many at a time":         {holdfast.Failure{Code: "http_429", RetryAfter: time.Hour}, time.Second, false},
		"put off alone":              {holdfast.Failure{Code: "452", RetryAfter: time.Hour, Served: true}, time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				db := openStore(t)
				defer closeStore(t, db)
				var tries atomic.Int64
				c.failure.Err = errors.New("not now")
				stop := dispatch(t, &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {
					Deliverer: once(&c.failure, &tries), Retry: holdfast.RetryPolicy{First: c.wait, Max: c.wait, Jitter: -1},
				}}})
				enqueue(t, db, holdfast.Message{ID: "m", Destination: "a"})
				time.Sleep(10 * time.Second)
				if got := tries.Load(); got != 1 {
					t.Fatalf("%d attempts before another message came", got)
				}
				enqueue(t, db, holdfast.Message{ID: "other", Destination: "a"})
				time.Sleep(5 * time.Second)
				if want := map[bool]holdfast.State{true: holdfast.Delivered, false: holdfast.Pending}[c.hastened]; true {
					wantState(t, db, "m", want)
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Messages that always find nobody, among others that get through, are not
// tried in a loop.
func TestWhatNeverFindsAnybodyIsNotHastenedForEver(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		var tries atomic.Int64
		stop := dispatch(t, &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {
			Deliverer: holdfast.DelivererFunc(func(_ context.Context, m holdfast.Message) (holdfast.Receipt, error) {
				if m.ID == "m" {
					tries.Add(1)
					return holdfast.Receipt{}, errUnreachable
				}
				return holdfast.Receipt{ID: m.ID, State: holdfast.Delivered}, nil
			}),
		}}})
		enqueue(t, db, holdfast.Message{ID: "m", Destination: "a"})
		for range 1200 {
			enqueue(t, db, holdfast.Message{ID: holdfast.NewID(), Destination: "a"})
			time.Sleep(time.Second)
		}
		if got := tries.Load(); got > 25 {
			t.Errorf("%d attempts in 20 minutes, want about as many as its own schedule has", got)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
