package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/waittest"
)

// F1-129: calls at one node whose messages another one delivers, each in 10 ms,
// are answered by that: each would wait for an hour.
func TestACallIsAnsweredByWhatAnotherNodeDid(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	here, there := opened(t, dsn, quick("here")), opened(t, dsn, quick("there"))
	ctx, stop := context.WithCancel(t.Context())
	var runs sync.WaitGroup
	defer runs.Wait()
	defer stop()
	runs.Go(func() {
		d := &holdfast.Dispatcher{Store: there, Routes: map[string]holdfast.Route{"a": {Deliverer: holdfast.DelivererFunc(
			func(ctx context.Context, _ holdfast.Message) (holdfast.Receipt, error) {
				select {
				case <-ctx.Done():
				case <-time.After(10 * time.Millisecond):
				}
				return holdfast.Receipt{}, nil
			})}}}
		if err := d.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	waittest.Until(t, "one has heard of the other", func() bool { return !here.Alone() })
	s := &holdfast.Submitter{Enqueuer: here, Outbox: here, Waiters: &holdfast.Waiters{}}
	const calls = 40
	told := make(chan bool, calls)
	for i := range calls {
		go func() {
			got, err := s.Submit(ctx, simple(holdfast.ID(fmt.Sprint("call-", i))), time.Hour)
			told <- err == nil && got.State == holdfast.Delivered && got.Attempt != nil
		}()
	}
	waittest.Until(t, "all are answered", func() bool { return len(told) == calls })
	for range calls {
		if !<-told {
			t.Error("a call is not told of the delivery")
		}
	}
}

// F1-129: where a message stands is told as Get tells it, in each state.
func TestWhereAMessageStands(t *testing.T) {
	t.Parallel()
	db := opened(t, database(t), quick("n"))
	stands := func(id holdfast.ID, want holdfast.Standing) {
		t.Helper()
		got, err := db.Standing(t.Context(), id)
		r, wrong := db.Get(t.Context(), id)
		if err != nil || wrong != nil || got != want || got != (holdfast.Standing{State: r.State, Tries: r.Tries, Cycle: r.Cycle}) {
			t.Errorf("%s stands at %+v, %v, want %+v; Get: %+v, %v", id, got, err, want, r, wrong)
		}
	}
	if _, err := db.Standing(t.Context(), "m"); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("a message that there is not: %v", err)
	}
	put(t, db, simple("m"))
	stands("m", holdfast.Standing{Cycle: 1})
	claims := until(t, db, 1)
	stands("m", holdfast.Standing{State: holdfast.Claimed, Cycle: 1})
	settleAll(t, db, claims, holdfast.Settlement{State: holdfast.Pending, Outcome: holdfast.Transient, Charged: true})
	stands("m", holdfast.Standing{Tries: 1, Cycle: 1})
	settleAll(t, db, until(t, db, 1), holdfast.Settlement{State: holdfast.Parked, Outcome: holdfast.Permanent, Charged: true})
	stands("m", holdfast.Standing{State: holdfast.Parked, Tries: 2, Cycle: 1})
	if _, err := db.Requeue(t.Context(), "m", holdfast.Requeue{Actor: "anna"}); err != nil {
		t.Fatal(err)
	}
	stands("m", holdfast.Standing{Cycle: 2})
	settleAll(t, db, until(t, db, 1), holdfast.Settlement{State: holdfast.Delivered, Outcome: holdfast.Succeeded})
	stands("m", holdfast.Standing{State: holdfast.Delivered, Tries: 1, Cycle: 2})
}
