package holdfast_test

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// lent is a store that another process may have.
type lent struct {
	holdfast.Store
	to atomic.Pointer[string]
}

func (s *lent) Owner() string { return *s.to.Load() }

func (s *lent) Claim(ctx context.Context, slots map[string]int) (holdfast.Batch, error) {
	if s.Owner() != "" {
		return holdfast.Batch{}, nil
	}
	return s.Store.Claim(ctx, slots)
}

func (s *lent) lend(to string) { s.to.Store(&to) }

// F1-32: a dispatcher whose store is another process's says so, once in the log
// and in its status, and nobody waits for an attempt that it will not make: who
// waits already is let go, and who comes later does not begin.
func TestADispatcherWhoseStoreIsAnothers(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		log := &journal{}
		store := &lent{Store: db}
		store.lend("")
		d := &holdfast.Dispatcher{
			Store: store, Logger: slog.New(log), Waiters: &holdfast.Waiters{},
			Routes: map[string]holdfast.Route{"a": {Deliverer: &script{}}, "b": {Deliverer: &script{}}},
		}
		stop := dispatch(t, d)
		time.Sleep(time.Minute)
		if lines := log.of(""); len(lines) > 0 {
			t.Errorf("a dispatcher that has its store logs %q", lines)
		}
		waiter := d.Waiters.Expect("early", "a") // of a message that nobody will try
		defer waiter.Stop()
		store.lend("process 7")
		began := time.Now()
		if _, told := waiter.Wait(t.Context(), time.Hour); told || time.Since(began) > time.Second {
			t.Errorf("who waited when the store went was told %t after %s", told, time.Since(began))
		}
		for _, s := range d.Status() {
			if s.Owner != "process 7" {
				t.Errorf("the status of %s names %q", s.Destination, s.Owner)
			}
		}
		began = time.Now()
		s := &holdfast.Submitter{Enqueuer: db, Outbox: db, Waiters: d.Waiters, Lane: d.Lane}
		if _, err := s.Submit(t.Context(), holdfast.Message{Destination: "a", Endpoint: "E"}, time.Hour); err != nil || time.Since(began) > 0 {
			t.Errorf("a caller waited %s (%v)", time.Since(began), err)
		}
		time.Sleep(time.Minute)
		store.lend("")
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		var about []string
		for _, line := range log.of("") {
			if strings.Contains(line, "process") {
				about = append(about, line)
			}
		}
		if len(about) != 2 || !strings.HasPrefix(about[0], "WARN another process owns the store") || !strings.HasSuffix(about[0], "owner=process 7") ||
			!strings.HasPrefix(about[1], "INFO this process owns the store now") {
			t.Errorf("logged %q, want that the store is another's, and that it is back", about)
		}
	})
}

// several is a store that dispatchers of other processes use too.
type several struct {
	holdfast.Store
	share atomic.Int64
}

func (s *several) Share(string, int) int     { return int(s.share.Load()) }
func (s *several) Holds(holdfast.Claim) bool { return true }
func (s *several) Alone() bool               { return false }
func (s *several) Leave(string)              {}
func (s *several) Standing(context.Context, holdfast.ID) (holdfast.Standing, error) {
	return holdfast.Standing{}, holdfast.ErrNotFound
}

var _ holdfast.Shared = (*several)(nil)

// Design 6: of a destination that others deliver to as well, a dispatcher has as
// many requests as its share is, and never more than its lane bears. Without a share
// it claims nothing, what it holds goes back, and nobody waits for it.
func TestADispatcherKeepsToItsShare(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		store := &several{Store: db}
		to := &script{answer: func(context.Context, holdfast.Message) error { time.Sleep(10 * time.Second); return nil }}
		d := &holdfast.Dispatcher{Store: store, Waiters: &holdfast.Waiters{}, Routes: map[string]holdfast.Route{"a": {Deliverer: to, Limit: 8}}}
		enqueue(t, db, numbered(100, "a")...)
		stop := dispatch(t, d)
		has := func(share int64, limit, inFlight int) {
			t.Helper()
			store.share.Store(share)
			time.Sleep(1500 * time.Millisecond) // it looks once a second
			if s := statusOf(t, d, "a"); s.Limit != limit || s.InFlight != inFlight || share <= 0 && s.Ready > 0 {
				t.Errorf("with a share of %d: %d at a time, %d in flight, %d ready; want %d, %d", share, s.Limit, s.InFlight, s.Ready, limit, inFlight)
			}
		}
		has(0, 0, 0)
		has(3, 3, 3)
		has(100, 5, 5)
		waiter := d.Waiters.Expect("a-99", "a")
		defer waiter.Stop()
		has(0, 0, 5) // which go on
		began := time.Now()
		if _, told := waiter.Wait(t.Context(), time.Hour); told || time.Since(began) > 0 {
			t.Errorf("who waits for a message that went back was told %t after %s", told, time.Since(began))
		}
		if n := db.Counts(); n.Claimed != 5 {
			t.Errorf("%d messages are claimed, want the 5 in flight", n.Claimed)
		}
		time.Sleep(time.Minute)
		has(-1, 0, 0)
		if n := db.Counts(); n.Claimed != 0 || n.Pending != 95 || to.count() != 5 {
			t.Errorf("%d claimed, %d pending, %d tried; want 0, 95, 5", n.Claimed, n.Pending, to.count())
		}
		store.share.Store(100)
		time.Sleep(5 * time.Minute)
		if n := db.Counts().Pending; n != 0 {
			t.Errorf("%d messages are still pending", n)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
