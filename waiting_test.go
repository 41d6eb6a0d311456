package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// hangsAgain answers first attempts as it is told, and retries never.
func hangsAgain(first error) *script {
	return &script{answer: func(ctx context.Context, m holdfast.Message) error {
		if m.Attempt.Number == 1 {
			return first
		}
		<-ctx.Done()
		return ctx.Err()
	}}
}

// WH-03: retries that hang leave room for a new message: it is tried at once, also while a
// thousand others are due, over a restart, and while the lane is polled only now and then.
func TestRetriesThatHangLeaveRoomForFirstAttempts(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{2, 8, 20} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				db := openStore(t)
				defer closeStore(t, db)
				to := hangsAgain(errTransient)
				route := webhook(to, true)
				route.Limit, route.Timeout = limit, 30*time.Second
				d := &holdfast.Dispatcher{Store: db, Poll: time.Hour, Routes: map[string]holdfast.Route{"a": route}}
				stop := dispatch(t, d)
				enqueue(t, db, numbered(1000, "a")...)
				time.Sleep(30 * time.Second) // all are due again, and hang
				for round := range 3 {
					retries := to.count()
					for i := range 30 {
						id := holdfast.ID(fmt.Sprint("new-", round, "-", i))
						enqueue(t, db, holdfast.Message{ID: id, Destination: "a"})
						synctest.Wait()
						if r := record(t, db, id); r.Tries != 1 {
							t.Fatalf("%s of round %d was tried %d times, want once at once", id, round, r.Tries)
						}
						if s := statusOf(t, d, "a"); s.InFlight != limit-(limit+3)/4 {
							t.Fatalf("%d retries at a time, want %d", s.InFlight, limit-(limit+3)/4)
						}
						time.Sleep(time.Second)
					}
					if to.count()-retries <= 30 {
						t.Error("no retry went on meanwhile")
					}
					if err := stop(); err != nil {
						t.Error(err)
					}
					stop = dispatch(t, d)
					time.Sleep(10 * time.Second)
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// noFirsts is a store that never finds first attempts.
type noFirsts struct {
	holdfast.Store
	asked atomic.Int64
}

func (s *noFirsts) ClaimFirst(context.Context, map[string]int) ([]holdfast.Claim, error) {
	s.asked.Add(1)
	return nil, errors.New("it takes too long")
}

// A store that fails to look for the first attempts of one lane keeps back no other lane, and is asked about once a second.
func TestFirstAttemptsThatAreNotFoundKeepBackNoOtherLane(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		bad, good := webhook(hangsAgain(errTransient), true), webhook(&script{}, true)
		bad.Limit, bad.Timeout = 8, 30*time.Second
		store := &noFirsts{Store: db}
		stop := dispatch(t, &holdfast.Dispatcher{Store: store, Poll: time.Hour, Routes: map[string]holdfast.Route{"bad": bad, "good": good}})
		enqueue(t, db, numbered(1000, "bad")...)
		time.Sleep(30 * time.Second) // all are due again, and hang
		for i := range 100 {
			id := holdfast.ID(fmt.Sprint("good-", i))
			enqueue(t, db, holdfast.Message{Destination: "bad"}, holdfast.Message{ID: id, Destination: "good"})
			synctest.Wait()
			if r := record(t, db, id); r.State != holdfast.Delivered {
				t.Fatalf("%s is %s, want it delivered at once", id, r.State)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if n := store.asked.Load(); n < 2 || n > 50 {
			t.Errorf("it was asked %d times in 10 s", n)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// Where first attempts hang, too, all requests may be such ones, and retries go in turn with them.
func TestFirstAttemptsAndRetriesGoInTurn(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		to := &script{answer: func(ctx context.Context, _ holdfast.Message) error { <-ctx.Done(); return ctx.Err() }}
		route := webhook(to, true)
		route.Limit, route.Timeout = 8, 20*time.Second
		d := &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": route}}
		stop := dispatch(t, d)
		for range 120 {
			enqueue(t, db, holdfast.Message{Destination: "a"}, holdfast.Message{Destination: "a"})
			time.Sleep(5 * time.Second)
			if s := statusOf(t, d, "a"); s.InFlight > 8 {
				t.Fatalf("%d requests at a time", s.InFlight)
			}
		}
		first, again := 0, 0
		for _, a := range to.tries() {
			if a.attempt.Number == 1 {
				first++
			} else {
				again++
			}
		}
		if first < 100 || again < 100 {
			t.Errorf("%d first attempts and %d retries in 10 minutes of 8 requests of 20 s each, want about as many", first, again)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// What is kept for first attempts keeps no retry from a slot that is free: at most six of eight requests are
// retries, and all eight are used.
func TestRetriesUseTheSlotsThatAreFree(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		to := &script{answer: func(ctx context.Context, m holdfast.Message) error {
			if m.Attempt.Number == 1 && m.Endpoint == "fails" {
				return errTransient
			}
			<-ctx.Done()
			return ctx.Err()
		}}
		route := webhook(to, true)
		route.Limit, route.Timeout = 8, 10*time.Minute
		d := &holdfast.Dispatcher{Store: db, Poll: time.Hour, Routes: map[string]holdfast.Route{"a": route}}
		stop := dispatch(t, d)
		for range 20 {
			enqueue(t, db, holdfast.Message{Destination: "a", Endpoint: "fails"})
		}
		time.Sleep(time.Second)
		for range 5 {
			enqueue(t, db, holdfast.Message{Destination: "a", Endpoint: "hangs"})
		}
		time.Sleep(30 * time.Second)
		if s := statusOf(t, d, "a"); s.InFlight != 8 {
			t.Errorf("five first attempts hang, and 20 retries are due: %d requests at a time, want 8", s.InFlight)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
