package holdfast_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// A dispatcher that has ended leaves no claim behind: an attempt that returns
// after it is settled as one that returned in time, however late that is. Until
// then nobody else in the process gets its message.
func TestAnAttemptThatReturnsAfterTheStopIsSettled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		late     time.Duration
		answer   error
		state    holdfast.State // as soon as it has returned
		failures int
	}{
		"late, delivered":      {5 * time.Second, nil, holdfast.Delivered, 0},
		"very late, delivered": {24 * time.Hour, nil, holdfast.Delivered, 0},
		"late, refused":        {5 * time.Second, errPermanent, holdfast.Parked, 1},
		"very late, failed":    {12 * time.Hour, errTransient, holdfast.Pending, 1},
		"late, cut off":        {5 * time.Second, context.Canceled, holdfast.Delivered, 0}, // tried again at once
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				db := openStore(t)
				defer closeStore(t, db)
				var calls atomic.Int64
				to := &script{answer: func(context.Context, holdfast.Message) error {
					if calls.Add(1) > 1 {
						return nil
					}
					time.Sleep(c.late + 13*time.Second) // the dispatcher gives up after 1 s, 10 s and 2 s
					return c.answer
				}}
				enqueue(t, db, holdfast.Message{ID: "m", Destination: "a"})
				route := holdfast.Route{Deliverer: to, Timeout: 365 * 24 * time.Hour, Retry: holdfast.RetryPolicy{First: time.Minute, Factor: 1, Jitter: -1}}
				run := func() func() error {
					return dispatch(t, &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": route}})
				}
				stop := run()
				time.Sleep(time.Second)
				if err := stop(); err == nil || !strings.Contains(err.Error(), "attempts of m did not return") {
					t.Errorf("the stop said %v", err)
				}
				stop = run()
				time.Sleep(c.late - 2*time.Second)
				wantState(t, db, "m", holdfast.Claimed)
				if n := calls.Load(); n != 1 {
					t.Errorf("while its attempt runs the message was sent %d times", n)
				}
				time.Sleep(5 * time.Second)
				if r := wantState(t, db, "m", c.state); r.Failures != c.failures {
					t.Errorf("%d failures, want %d", r.Failures, c.failures)
				}
				if c.state == holdfast.Pending { // after the wait of the policy it is tried as ever
					time.Sleep(2 * time.Minute)
					wantState(t, db, "m", holdfast.Delivered)
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// brittle is a store that cannot record anything for a while.
type brittle struct {
	holdfast.Store
	broken atomic.Bool
}

func (b *brittle) Settle(ctx context.Context, s ...holdfast.Settlement) ([]bool, error) {
	if b.broken.Load() {
		return nil, errors.New("the disk is full")
	}
	return b.Store.Settle(ctx, s...)
}

// Nor where the store could not record the last outcomes: they are recorded
// when it can.
func TestOutcomesThatAStopCouldNotRecordAreRecordedLater(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		store := &brittle{Store: db}
		to := &script{}
		store.broken.Store(true)
		enqueue(t, db, numbered(3, "a")...)
		stop := dispatch(t, &holdfast.Dispatcher{Store: store, Routes: map[string]holdfast.Route{"a": {Deliverer: to}}})
		time.Sleep(time.Second)
		if err := stop(); err == nil || !strings.Contains(err.Error(), "not recorded") {
			t.Errorf("the stop said %v", err)
		}
		time.Sleep(time.Hour)
		wantState(t, db, "a-0", holdfast.Claimed)
		store.broken.Store(false)
		time.Sleep(10 * time.Second)
		for _, m := range numbered(3, "a") {
			wantState(t, db, m.ID, holdfast.Delivered)
		}
		if n := to.count(); n != 3 {
			t.Errorf("sent %d times, want 3", n)
		}
	})
}

// flaky is a store that takes its time to record outcomes, and fails at first.
type flaky struct {
	holdfast.Store
	fails atomic.Int64
	takes atomic.Int64
	asked atomic.Int64
}

func (f *flaky) Settle(ctx context.Context, s ...holdfast.Settlement) ([]bool, error) {
	f.asked.Add(1)
	<-time.After(time.Duration(f.takes.Load()))
	if f.fails.Add(-1) >= 0 {
		return nil, errors.New("connection reset")
	}
	return f.Store.Settle(ctx, s...)
}

// A stop does not wait for a store that records nothing, where no answer took long: the
// next owner tries the message again.
func TestAStopWaitsForNoStoreThatRefuses(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		store := &flaky{Store: db}
		const grace = 10 * time.Second
		d := &holdfast.Dispatcher{Store: store, Grace: grace, Routes: map[string]holdfast.Route{
			"peer": {Timeout: time.Hour, Deliverer: &script{answer: func(ctx context.Context, _ holdfast.Message) error {
				<-ctx.Done()
				store.fails.Store(1 << 30)
				return ctx.Err()
			}}},
		}}
		stop := dispatch(t, d)
		enqueue(t, db, holdfast.Message{ID: "p", Destination: "peer"})
		synctest.Wait()
		began := time.Now()
		err := stop()
		if took := time.Since(began); took >= grace+time.Second {
			t.Errorf("the stop took %s", took)
		}
		if err == nil || !strings.Contains(err.Error(), "1 outcomes not recorded: ") || !strings.Contains(err.Error(), "connection reset") {
			t.Errorf("the stop said %v", err)
		}
		store.fails.Store(0) // the process lives on, and the store takes it after all
		time.Sleep(time.Minute)
		wantState(t, db, "p", holdfast.Pending)
		if n := store.asked.Load(); n < 2 {
			t.Errorf("the store was asked %d times", n)
		}
	})
}

// NO-12: an outcome that is not recorded at the first try ends no stop: the answer of
// another route is waited for, and recorded, and so is one that the store is slow to take.
func TestAStopRecordsWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fails  int64         // Settle calls
		takes  time.Duration // each of them
		answer time.Duration // of the mail, after the cut
		ends   time.Duration // the run, after the cut; at most
	}{
		"a failure, and a late answer":   {1, 0, 20 * time.Second, 21 * time.Second},
		"many failures":                  {30, 0, 20 * time.Second, 21 * time.Second},
		"failures after the last answer": {75, 0, 30 * time.Second, 39 * time.Second},
		"a slow store":                   {0, 5 * time.Second, time.Second, 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				db := openStore(t)
				defer closeStore(t, db)
				store := &flaky{Store: db}
				const grace = 10 * time.Second
				d := &holdfast.Dispatcher{Store: store, Grace: grace, Routes: map[string]holdfast.Route{
					"mail": {Timeout: time.Hour, Last: 40 * time.Second, Deliverer: &script{answer: func(ctx context.Context, _ holdfast.Message) error {
						<-ctx.Done()
						time.Sleep(c.answer)
						return nil
					}}},
					"peer": {Timeout: time.Hour, Deliverer: &script{answer: func(ctx context.Context, _ holdfast.Message) error {
						<-ctx.Done()
						store.fails.Store(c.fails)
						store.takes.Store(int64(c.takes))
						return ctx.Err()
					}}},
				}}
				stop := dispatch(t, d)
				enqueue(t, db, holdfast.Message{ID: "m", Destination: "mail"}, holdfast.Message{ID: "p", Destination: "peer"})
				synctest.Wait()
				began := time.Now()
				if err := stop(); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took < grace+c.answer || took > grace+c.ends {
					t.Errorf("the stop took %s, want between %s and %s", took, grace+c.answer, grace+c.ends)
				}
				if n := store.asked.Load(); n > c.fails+3 {
					t.Errorf("the store was asked %d times", n)
				}
				wantState(t, db, "m", holdfast.Delivered)
				wantState(t, db, "p", holdfast.Pending)
			})
		})
	}
}
