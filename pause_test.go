package holdfast_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// F1-80: a destination that a person has paused is left alone, over restarts
// and by every dispatcher of the store, until somebody resumes it.
func TestAPausedDestinationIsLeftAlone(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		to, other := &script{answer: func(context.Context, holdfast.Message) error { time.Sleep(time.Second); return nil }}, &script{}
		waiters := &holdfast.Waiters{}
		run := func() (*holdfast.Dispatcher, func() error) {
			d := &holdfast.Dispatcher{Store: db, Lanes: db, Waiters: waiters, Routes: map[string]holdfast.Route{"erp": {Deliverer: to}, "other": {Deliverer: other}}}
			return d, dispatch(t, d)
		}
		d, stop := run()
		enqueue(t, db, numbered(50, "erp")...)
		time.Sleep(100 * time.Millisecond)
		if err := d.Pause(t.Context(), "erp", "anna"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if n := to.count(); n != 5 || db.Counts().Pending != 45 {
			t.Errorf("%d were begun and %d wait, want the 5 that were in hand to be done, and no more", n, db.Counts().Pending)
		}
		if s := statusOf(t, d, "erp"); !s.Decision.Paused || s.Decision.Actor != "anna" || s.Ready != 0 {
			t.Errorf("status %+v", s)
		}
		s := &holdfast.Submitter{Enqueuer: db, Outbox: db, Waiters: waiters, Lane: d.Lane}
		if told, longest := callers(t, s, 3); told != 0 || longest != 0 {
			t.Errorf("%d callers were told of an attempt, after %s", told, longest)
		}
		enqueue(t, db, holdfast.Message{ID: "there", Destination: "other"})
		synctest.Wait()
		wantState(t, db, "there", holdfast.Delivered)

		if err := stop(); err != nil {
			t.Error(err)
		}
		d, stop = run()
		time.Sleep(2 * time.Minute)
		if s := statusOf(t, d, "erp"); to.count() != 5 || s.Standstill == nil || s.Standstill.Cause != holdfast.CausePaused {
			t.Errorf("after a restart %d were begun; %+v", to.count(), s)
		}
		if err := db.ResumeLane(t.Context(), "erp", "bert"); err != nil { // at another node
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		if s := statusOf(t, d, "erp"); db.Counts().Pending != 0 || s.Decision.Paused || s.Decision.Actor != "bert" {
			t.Errorf("resumed, and %d wait; %+v", db.Counts().Pending, s)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// Looking for decisions, again and again, puts off no message that comes due.
func TestLookingForDecisionsPutsNothingOff(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		begin := time.Now()
		to := &script{answer: func(context.Context, holdfast.Message) error {
			if time.Since(begin) < 10*time.Second {
				return errors.New("not yet")
			}
			return nil
		}}
		stop := dispatch(t, &holdfast.Dispatcher{Store: db, Lanes: db, Poll: time.Hour, Routes: map[string]holdfast.Route{"erp": {
			Deliverer: to, Retry: holdfast.RetryPolicy{First: 20 * time.Second, Max: 20 * time.Second},
		}}})
		enqueue(t, db, holdfast.Message{ID: "late", Destination: "erp"})
		time.Sleep(time.Minute)
		wantState(t, db, "late", holdfast.Delivered)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// F1-48: who waits for a first attempt is answered when its destination is paused.
func TestAPauseKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		to := &script{answer: func(context.Context, holdfast.Message) error { time.Sleep(5 * time.Second); return errTransient }}
		waiters := &holdfast.Waiters{}
		d := &holdfast.Dispatcher{Store: db, Lanes: db, Waiters: waiters, Routes: map[string]holdfast.Route{"erp": {Deliverer: to}}}
		stop := dispatch(t, d)
		paused := make(chan error)
		go func() {
			time.Sleep(time.Second)
			paused <- d.Pause(context.WithoutCancel(t.Context()), "erp", "anna")
		}()
		s := &holdfast.Submitter{Enqueuer: db, Outbox: db, Waiters: waiters, Lane: d.Lane}
		if told, longest := callers(t, s, 20); told != 5 || longest != 5*time.Second {
			t.Errorf("%d of 20 were told, the last of all after %s; want the 5 in hand", told, longest)
		}
		if err := errors.Join(<-paused, stop()); err != nil {
			t.Error(err)
		}
	})
}

// Resuming what is held or down has it tried at once.
func TestResumingTriesAtOnce(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]error{"held": errLaneFault, "down": errUnreachable} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				db := openStore(t)
				defer closeStore(t, db)
				to := &script{answer: always(fault)}
				enqueue(t, db, numbered(20, "a")...)
				d := &holdfast.Dispatcher{Store: db, Lanes: db, Routes: map[string]holdfast.Route{"a": {Deliverer: to}}}
				stop := dispatch(t, d)
				time.Sleep(time.Hour)
				to.become(nil)
				if err := d.Resume(t.Context(), "a", "anna"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				if s := statusOf(t, d, "a"); !s.Up || s.Held {
					t.Errorf("a second later the lane is %+v", s)
				}
				if f, err := db.LaneFaults(t.Context()); err != nil || len(f) != 0 {
					t.Errorf("kept faults %+v, %v", f, err)
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Without a place to keep it there is no pause.
func TestAPauseNeedsLanes(t *testing.T) {
	t.Parallel()
	d := &holdfast.Dispatcher{}
	if err := errors.Join(d.Pause(t.Context(), "a", "anna"), d.Resume(t.Context(), "a", "anna")); !errors.Is(err, holdfast.ErrState) {
		t.Errorf("got %v", err)
	}
}
