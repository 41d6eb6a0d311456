package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// callers has so many programs submit to a destination at once, each ready to
// wait for ten seconds, and returns how many were told of an attempt and how
// long the last one has waited.
func callers(t *testing.T, s *holdfast.Submitter, n int) (told int, longest time.Duration) {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			began := time.Now()
			got, err := s.Submit(t.Context(), holdfast.Message{ID: holdfast.ID(fmt.Sprint("call-", i)), Destination: "erp", Endpoint: "Book", Payload: []byte("{}")}, 10*time.Second)
			mu.Lock()
			defer mu.Unlock()
			longest = max(longest, time.Since(began))
			if err != nil || got.State == holdfast.Delivered {
				t.Errorf("caller %d: got %+v, %v", i, got, err)
			}
			if got.Attempt != nil {
				told++
			}
		})
	}
	all.Wait()
	return told, longest
}

// F1-48: 64 callers at once, the first ones of a destination that is away, are
// all answered as soon as it is known that nothing will be tried now: those
// whose attempt found it out with that attempt, the others without. SF-03.
func TestNobodyWaitsForAnAttemptThatWillNotBeMadeNow(t *testing.T) {
	t.Parallel()
	busy := &holdfast.Failure{Outcome: holdfast.NotStarted, Code: "not_started", RetryAfter: time.Minute, Err: errors.New("busy")}
	for name, c := range map[string]struct {
		answer error
		told   bool // somebody is
	}{
		"refused":           {errUnreachable, true},
		"credentials":       {errLaneFault, true},
		"could not begin":   {busy, false},
		"transient failure": {errTransient, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				db := openStore(t)
				defer closeStore(t, db)
				waiters := &holdfast.Waiters{}
				to := &script{answer: func(context.Context, holdfast.Message) error {
					time.Sleep(20 * time.Millisecond)
					return c.answer
				}}
				d := &holdfast.Dispatcher{Store: db, Waiters: waiters, Routes: map[string]holdfast.Route{"erp": {Deliverer: to}}}
				stop := dispatch(t, d)
				s := &holdfast.Submitter{Enqueuer: db, Outbox: db, Waiters: waiters, Lane: d.Lane}
				if told, longest := callers(t, s, 64); longest > time.Second || (told > 0) != c.told {
					t.Errorf("%d of 64 were told of their attempt, the last of all after %s", told, longest)
				}
				began := time.Now() // and who comes later does not wait at all
				if _, err := s.Submit(t.Context(), holdfast.Message{Destination: "erp", Endpoint: "Book"}, 10*time.Second); err != nil || time.Since(began) > 0 {
					t.Errorf("a later caller: %v after %s", err, time.Since(began))
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// F1-48: a stop keeps nobody waiting, but for what is in hand.
func TestAStopKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		waiters := &holdfast.Waiters{}
		to := &script{answer: func(context.Context, holdfast.Message) error {
			time.Sleep(3 * time.Second)
			return errTransient
		}}
		d := &holdfast.Dispatcher{Store: db, Waiters: waiters, Routes: map[string]holdfast.Route{"erp": {Deliverer: to}}}
		stop := dispatch(t, d)
		stopped := make(chan error)
		go func() {
			time.Sleep(time.Second)
			stopped <- stop()
		}()
		s := &holdfast.Submitter{Enqueuer: db, Outbox: db, Waiters: waiters, Lane: d.Lane}
		if told, longest := callers(t, s, 64); told != 5 || longest != 3*time.Second {
			t.Errorf("%d were told of their attempt, the last of all after %s; want the 5 in hand after 3 s", told, longest)
		}
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		began := time.Now()
		if _, err := s.Submit(t.Context(), holdfast.Message{Destination: "erp", Endpoint: "Book"}, 10*time.Second); err != nil || time.Since(began) > 0 {
			t.Errorf("after the stop: %v after %s", err, time.Since(began))
		}
	})
}

// A destination without a route is not waited for either.
func TestNobodyWaitsWithoutARoute(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		waiters := &holdfast.Waiters{}
		d := &holdfast.Dispatcher{Store: db, Waiters: waiters, Routes: map[string]holdfast.Route{"other": {Deliverer: &script{}}}}
		stop := dispatch(t, d)
		synctest.Wait()
		s := &holdfast.Submitter{Enqueuer: db, Outbox: db, Waiters: waiters, Lane: d.Lane}
		if told, longest := callers(t, s, 2); told != 0 || longest != 0 {
			t.Errorf("%d told, after %s", told, longest)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// F1-48, SF-03: who submits waits for an attempt that will be made now, and for no
// other, whatever the reason.
func TestForWhichLaneACallerWaits(t *testing.T) {
	t.Parallel()
	type asked = func(destination string) (holdfast.LaneStatus, bool)
	lane := func(edit func(s *holdfast.LaneStatus)) asked {
		s := holdfast.LaneStatus{Destination: "erp", Up: true, Limit: 1}
		edit(&s)
		return func(destination string) (holdfast.LaneStatus, bool) {
			if destination == s.Destination {
				return s, true
			}
			return holdfast.LaneStatus{}, true
		}
	}
	for name, c := range map[string]struct {
		lane  asked
		waits bool
	}{
		"it is tried":             {lane(func(*holdfast.LaneStatus) {}), true},
		"no lane is known yet":    {func(string) (s holdfast.LaneStatus, known bool) { return s, false }, true},
		"nobody tells":            {nil, true},
		"nobody delivers there":   {lane(func(s *holdfast.LaneStatus) { s.Destination = "erp2" }), false},
		"it is down":              {lane(func(s *holdfast.LaneStatus) { s.Up = false }), false},
		"it is busy":              {lane(func(s *holdfast.LaneStatus) { s.Busy = 1 }), false},
		"another dispatcher's":    {lane(func(s *holdfast.LaneStatus) { s.Limit = 0 }), false},
		"its dispatcher stops":    {lane(func(s *holdfast.LaneStatus) { s.Closed = true }), false},
		"it is paused":            {lane(func(s *holdfast.LaneStatus) { s.Decision.Paused = true }), false},
		"another process's store": {lane(func(s *holdfast.LaneStatus) { s.Owner = "process 7" }), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				db := openStore(t)
				defer closeStore(t, db)
				s := &holdfast.Submitter{Enqueuer: db, Outbox: db, Waiters: &holdfast.Waiters{}, Lane: c.lane}
				began, want := time.Now(), time.Duration(0)
				if c.waits {
					want = 10 * time.Second
				}
				sub, err := s.Submit(t.Context(), holdfast.Message{Destination: "erp", Endpoint: "Book"}, 10*time.Second)
				if took := time.Since(began); err != nil || sub.State != holdfast.Pending || sub.Attempt != nil || took != want {
					t.Errorf("got %+v, %v after %s, want it pending after %s", sub, err, took, want)
				}
			})
		})
	}
}
