package postgres_test

import (
	"context"
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
			func(context.Context, holdfast.Message) (holdfast.Receipt, error) {
				time.Sleep(10 * time.Millisecond)
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
