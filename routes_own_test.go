package holdfast_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// asked is a store that counts how often each destination was asked for.
type asked struct {
	holdfast.Store
	mu sync.Mutex
	n  map[string]int
}

func (s *asked) Claim(ctx context.Context, slots map[string]int) (holdfast.Batch, error) {
	s.mu.Lock()
	for name := range slots {
		s.n[name]++
	}
	s.mu.Unlock()
	return s.Store.Claim(ctx, slots)
}

// Issue 13, 4: a route may be polled more often or less often than the others, also once
// it was changed.
func TestARouteIsPolledAsItSays(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		store := &asked{Store: db, n: map[string]int{}}
		d := &holdfast.Dispatcher{Store: store, Poll: 10 * time.Second, Routes: map[string]holdfast.Route{
			"usual": {Deliverer: &script{}}, "often": {Deliverer: &script{}, Poll: time.Second}, "seldom": {Deliverer: &script{}, Poll: time.Minute},
		}}
		stop := dispatch(t, d)
		want := func(counts map[string]int) {
			t.Helper()
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			store.mu.Lock()
			defer store.mu.Unlock()
			for name, n := range counts {
				if got := store.n[name]; got < n-2 || got > n+2 {
					t.Errorf("in 10 minutes %s was asked for %d times, want %d", name, got, n)
				}
			}
			clear(store.n)
		}
		want(map[string]int{"usual": 60, "often": 600, "seldom": 10})
		setRoute(t, d, "often", holdfast.Route{Deliverer: &script{}})
		setRoute(t, d, "seldom", holdfast.Route{Deliverer: &script{}, Poll: time.Second})
		want(map[string]int{"usual": 60, "often": 60, "seldom": 600})
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// Issue 13, 4: an attempt that was cut off at a stop may take as long as its route says,
// and one of another route does not.
func TestAStopWaitsAsLongAsARouteSays(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		returns := func(after time.Duration) *script {
			return &script{answer: func(context.Context, holdfast.Message) error {
				time.Sleep(after)
				return nil
			}}
		}
		const grace = 10 * time.Second
		d := &holdfast.Dispatcher{Store: db, Grace: grace, Routes: map[string]holdfast.Route{
			"mail": {Deliverer: returns(40 * time.Second), Timeout: time.Hour, Last: time.Minute},
			"peer": {Deliverer: returns(2 * time.Minute), Timeout: time.Hour},
		}}
		stop := dispatch(t, d)
		enqueue(t, db, holdfast.Message{ID: "m", Destination: "mail"}, holdfast.Message{ID: "p", Destination: "peer"})
		synctest.Wait()
		began := time.Now()
		err := stop()
		if took := time.Since(began); took != 40*time.Second || err == nil || !strings.Contains(err.Error(), "attempts of p did not return") {
			t.Errorf("after %s: %v; want the mail to be waited for, and nothing else", took, err)
		}
		wantState(t, db, "m", holdfast.Delivered)
		time.Sleep(2 * time.Minute) // for the peer
	})
}

// Issue 13, 4: a route that is removed and set at once keeps its part of a destination
// that others deliver to, too.
func TestARouteThatIsSetAtOnceAgainDoesNotLeave(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		store := &leaving{several: &several{Store: db}}
		store.share.Store(100)
		to := &script{answer: always(errLaneFault)}
		d := &holdfast.Dispatcher{Store: store, Lanes: db, Routes: map[string]holdfast.Route{"a": {Deliverer: to}}}
		stop := dispatch(t, d)
		enqueue(t, db, numbered(1, "a")...)
		time.Sleep(90 * time.Second)
		if !statusOf(t, d, "a").Held {
			t.Fatal("the lane is not held: this tests nothing")
		}
		time.Sleep(1500 * time.Millisecond) // between two looks of the loop
		d.RemoveRoute("a")
		synctest.Wait()
		setRoute(t, d, "a", holdfast.Route{Deliverer: to, Limit: 1})
		to.become(nil)
		time.Sleep(3 * time.Second)
		if s := statusOf(t, d, "a"); store.left.Load() != 0 || s.Held {
			t.Errorf("left %d times, %+v; want never, and not held", store.left.Load(), s)
		}
		d.RemoveRoute("a")
		if time.Sleep(2 * time.Second); store.left.Load() != 1 {
			t.Errorf("left %d times, want once", store.left.Load())
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
