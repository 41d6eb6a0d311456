package holdfast_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

type panicObserver struct{}

func (panicObserver) ObserveAttempt(holdfast.AttemptInfo)   { panic("observer") }
func (panicObserver) ObserveExpired(int)                    {}
func (panicObserver) ObserveReceived(holdfast.ReceivedInfo) {}

// batcher is a destination that takes several messages at once.
type batcher struct {
	size func() int
	do   func(ctx context.Context, ms []holdfast.Message) []holdfast.Result
}

func (b *batcher) Deliver(ctx context.Context, m holdfast.Message) (holdfast.Receipt, error) {
	r := b.do(ctx, []holdfast.Message{m})[0]
	return r.Receipt, r.Err
}

func (b *batcher) BatchSize() int { return b.size() }

func (b *batcher) DeliverBatch(ctx context.Context, ms []holdfast.Message) []holdfast.Result {
	return b.do(ctx, ms)
}

// Nor does a deliverer that cannot say how much it takes.
func TestAPanickingBatchSizeIsOne(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		enqueue(t, db, holdfast.Message{ID: "m", Destination: "a"})
		stop := dispatch(t, &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {Deliverer: &batcher{
			size: func() int { panic("size") }, do: func(_ context.Context, ms []holdfast.Message) []holdfast.Result {
				return make([]holdfast.Result, len(ms))
			},
		}}}})
		time.Sleep(time.Hour)
		wantState(t, db, "m", holdfast.Delivered)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// Two ids that merely hold the same UUID stay two.
func TestOnlyRealUUIDFormsAreOneID(t *testing.T) {
	t.Parallel()
	const u = "0198c0de-0000-7000-8000-000000000001"
	a, errA := holdfast.ParseID("A" + u + "1")
	b, errB := holdfast.ParseID("A" + u + "2")
	if a == b {
		t.Errorf("two ids are one: %q %v %q %v", a, errA, b, errB)
	}
	db := openStore(t)
	defer closeStore(t, db)
	for _, end := range []string{"1", "2"} {
		r, err := db.Enqueue(t.Context(), holdfast.Message{ID: holdfast.ID("A" + u + end), Destination: "a", Endpoint: "E", Payload: []byte(`{}`)})
		if err != nil || r[0].Duplicate {
			t.Errorf("message %s: got %+v, %v", end, r, err)
		}
	}
}

// A failed request of many messages is one failure of its lane.
func TestARequestThatFailsIsOneFailure(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		var calls atomic.Int64
		b := &batcher{size: func() int { return 64 }, do: func(_ context.Context, ms []holdfast.Message) []holdfast.Result {
			r := make([]holdfast.Result, len(ms))
			if calls.Add(1) == 1 {
				for i := range r {
					r[i].Err = errTransient
				}
			}
			return r
		}}
		enqueue(t, db, numbered(64, "a")...)
		d := &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {Deliverer: b}}}
		stop := dispatch(t, d)
		time.Sleep(time.Second)
		if s := d.Status()[0]; !s.Up || s.Limit != 4 {
			t.Errorf("after one failed request of 64 messages the lane is %+v", s)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// And one success, so that slow start is slow.
func TestARequestThatWorksIsOneSuccess(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		b := &batcher{size: func() int { return 16 }, do: func(_ context.Context, ms []holdfast.Message) []holdfast.Result {
			time.Sleep(time.Second)
			return make([]holdfast.Result, len(ms))
		}}
		enqueue(t, db, numbered(64, "a")...)
		d := &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {Deliverer: b, Limit: 40}}}
		stop := dispatch(t, d)
		time.Sleep(1500 * time.Millisecond)
		if s := d.Status()[0]; s.Limit != 5 {
			t.Errorf("after four requests the limit is %d, want 5 still", s.Limit)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// What waited for its turn until the sender gave up was not begun.
func TestADuplicateThatWaitedInVainIsNotStarted(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		p := &program{slow: 20 * time.Second}
		e := &holdfast.Endpoints{Log: db, Map: map[string]holdfast.Endpoint{"Book": {Forward: p}}}
		go func() { _, _ = e.Receive(t.Context(), arriving("m", "Book")) }()
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := e.Receive(ctx, arriving("m", "Book"))
		if f := holdfast.AsFailure(err); f.Outcome != holdfast.NotStarted {
			t.Errorf("got %s %q, want not_started", f.Outcome, f.Code)
		}
		time.Sleep(time.Minute)
	})
}

// Attempts from before the lane went down do not put its probes off.
func TestStragglersDoNotCountAsProbes(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		var n, probes atomic.Int64
		down := time.Now().Add(30 * time.Second)
		to := &script{answer: func(context.Context, holdfast.Message) error {
			switch k := n.Add(1); {
			case time.Now().After(down):
				probes.Add(1)
			case k > 5: // begun before, and failing one after the other long after
				time.Sleep(40*time.Second + time.Duration(k)*time.Second)
			default:
				time.Sleep(29 * time.Second)
			}
			return errTransient
		}}
		// Ten at once: five fail and take the lane down, five linger.
		enqueue(t, db, numbered(30, "a")...)
		d := &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {Deliverer: to, Timeout: time.Hour, Retry: holdfast.RetryPolicy{First: 4 * time.Second, Factor: 1, Jitter: -1}}}}
		stop := dispatch(t, d)
		time.Sleep(90 * time.Second)
		if got := probes.Load(); got < 10 {
			t.Errorf("%d probes in a minute at 4 s each: %+v", got, d.Status()[0])
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// An error with the outcome of a success is transient and charged.
func TestAnErrorIsNoSuccess(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "a day in virtual time")
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		to := &script{answer: always(&holdfast.Failure{Outcome: holdfast.Succeeded, Err: errors.New("odd")})}
		enqueue(t, db, holdfast.Message{ID: "m", Destination: "a"})
		stop := dispatch(t, &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {Deliverer: to}}})
		time.Sleep(24 * time.Hour)
		r := record(t, db, "m")
		if r.State != holdfast.Parked {
			t.Errorf("%s after %d tries, %d charged", r.State, r.Tries, r.Failures)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A first wait of a message is not cut by its route.
func TestAMessagesOwnWaitIsKept(t *testing.T) {
	t.Parallel()
	route := holdfast.RetryPolicy{First: 30 * time.Second, Max: 30 * time.Second, Factor: 1, Attempts: 51}
	own := holdfast.RetryPolicy{First: time.Hour}
	if w := own.Over(route).Wait(0); w != time.Hour {
		t.Errorf("the message asks for 1h, it gets %s", w)
	}
}

// A store that stops does not leave attempts running behind Run.
func TestRunWaitsForAttemptsWhenTheStoreStops(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		var running atomic.Int64
		to := &script{answer: func(ctx context.Context, m holdfast.Message) error {
			running.Add(1)
			defer running.Add(-1)
			if m.ID == "a-0" {
				time.Sleep(time.Second) // its outcome is the first that cannot be recorded
				return nil
			}
			<-ctx.Done()
			time.Sleep(time.Second)
			return ctx.Err()
		}}
		enqueue(t, db, numbered(5, "a")...)
		stop := dispatch(t, &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {Deliverer: to}}})
		synctest.Wait()
		closeStore(t, db)
		time.Sleep(time.Minute)
		err := stop()
		if !errors.Is(err, holdfast.ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
		if n := running.Load(); n > 0 {
			t.Errorf("Run returned while %d attempts run", n)
		}
	})
}

// A route that makes no sense is refused by name.
func TestANegativeLimitIsRefused(t *testing.T) {
	t.Parallel()
	db := openStore(t)
	defer closeStore(t, db)
	for field, r := range map[string]holdfast.Route{
		"route":           {},
		"route.a.limit":   {Deliverer: &script{}, Limit: -1},
		"route.a.timeout": {Deliverer: &script{}, Timeout: -1},
		"retry.factor":    {Deliverer: &script{}, Retry: holdfast.RetryPolicy{Factor: 0.1}},
	} {
		err := (&holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": r}}).Run(t.Context())
		if f, ok := errors.AsType[*holdfast.FieldError](err); !ok || f.Field != field || !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("%s: got %v", field, err)
		}
	}
}

// Two forms of one id are one call.
func TestOneFlightForAllFormsOfAnID(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		p := &program{slow: time.Second}
		e := &holdfast.Endpoints{Log: db, Map: map[string]holdfast.Endpoint{"Book": {Forward: p}}}
		var both sync.WaitGroup
		for _, id := range []string{"0198c0de-0000-7000-8000-000000000001", "0198C0DE000070008000000000000001"} {
			both.Go(func() {
				if _, err := e.Receive(t.Context(), arriving(id, "Book")); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		if n := p.calls.Load(); n != 1 {
			t.Errorf("%d calls, want 1", n)
		}
	})
}

// What was sent before credentials were refused says nothing about them.
func TestALateSuccessDoesNotEndAHold(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		to := &script{answer: func(_ context.Context, m holdfast.Message) error {
			if m.ID == "a-0" {
				time.Sleep(20 * time.Second) // begun before the credentials were revoked
				return nil
			}
			return errLaneFault
		}}
		enqueue(t, db, numbered(10, "a")...)
		d := &holdfast.Dispatcher{Store: db, Lanes: db, Routes: map[string]holdfast.Route{"a": {Deliverer: to, Retry: holdfast.RetryPolicy{First: time.Hour, Max: time.Hour}}}}
		stop := dispatch(t, d)
		time.Sleep(19 * time.Second)
		before := to.count()
		time.Sleep(2 * time.Second)
		if n, s := to.count()-before, d.Status()[0]; n != 0 || !s.Held {
			t.Errorf("%d attempts after the late success, lane %+v", n, s)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// SF-09: two runs of one dispatcher do not overlap.
func TestADispatcherRunsOnce(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		d := &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {Deliverer: &script{}}}}
		stop := dispatch(t, d)
		synctest.Wait()
		if err := d.Run(t.Context()); !errors.Is(err, holdfast.ErrState) {
			t.Errorf("the second run: got %v, want ErrState", err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		stop = dispatch(t, d) // one after the other is fine
		synctest.Wait()
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
