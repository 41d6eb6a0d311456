package holdfast_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// enqueuer is an outbox whose caller has other things happen during an Enqueue.
type enqueuer func(m holdfast.Message)

func (e enqueuer) Enqueue(_ context.Context, ms ...holdfast.Message) ([]holdfast.Receipt, error) {
	e(ms[0])
	return []holdfast.Receipt{{ID: ms[0].ID}}, nil
}

// SF-03: who finds out that a destination is down is told so, although it is
// down by then; for one that was down before nobody waits.
func TestWhoFindsADestinationDownIsTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, told bool
		took         time.Duration
	}{
		"by this message":    {false, true, 20 * time.Millisecond},
		"by another message": {false, false, time.Second},
		"long before":        {true, false, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			waiters := &holdfast.Waiters{}
			var down atomic.Bool
			down.Store(c.before)
			s := &holdfast.Submitter{
				Waiters: waiters,
				Lanes:   func() []holdfast.LaneStatus { return []holdfast.LaneStatus{{Destination: "erp", Up: !down.Load()}} },
				Enqueuer: enqueuer(func(m holdfast.Message) {
					down.Store(true)
					if c.told {
						time.AfterFunc(20*time.Millisecond, func() { // the commit of the outcome takes its time
							waiters.ObserveAttempt(holdfast.AttemptInfo{ID: m.ID, Outcome: holdfast.LaneFault})
						})
					}
				}),
			}
			began := time.Now()
			got, err := s.Submit(t.Context(), holdfast.Message{ID: "m", Destination: "erp", Endpoint: "Book"}, 10*time.Second)
			if took := time.Since(began); err != nil || (got.Attempt != nil) != c.told || took != c.took {
				t.Errorf("%s: got %+v, %v after %s", name, got, err, took)
			}
		})
	}
}
