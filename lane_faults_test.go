package holdfast_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/transport"
)

// Events in other lanes do not put off the look for attempts that hang.
func TestAHungAttemptIsGivenUpUnderTraffic(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		release := make(chan struct{})
		var seen atomic.Bool
		bad := &script{answer: func(context.Context, holdfast.Message) error {
			if !seen.Swap(true) {
				<-release
			}
			return nil
		}}
		enqueue(t, db, holdfast.Message{ID: "hung", Destination: "bad"})
		stop := dispatch(t, &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"bad": {Deliverer: bad, Timeout: time.Second}, "good": {Deliverer: &script{}}}})
		for i := range 1200 { // 10 min, a message each 500ms
			enqueue(t, db, holdfast.Message{ID: holdfast.ID(fmt.Sprint("g", i)), Destination: "good"})
			time.Sleep(500 * time.Millisecond)
		}
		wantState(t, db, "hung", holdfast.Delivered)
		close(release)
		synctest.Wait()
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// An attempt that never returns does not keep its lane down.
func TestADownLaneWithAHungAttemptIsProbed(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "a day in virtual time")
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		release := make(chan struct{})
		var down atomic.Bool
		var seen atomic.Bool
		down.Store(true)
		to := &script{answer: func(_ context.Context, m holdfast.Message) error {
			if m.ID == "a-0" && !seen.Swap(true) {
				<-release
			}
			if down.Load() {
				return errUnreachable
			}
			return nil
		}}
		enqueue(t, db, numbered(20, "a")...)
		d := &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {Deliverer: to, Timeout: time.Second}}}
		stop := dispatch(t, d)
		time.Sleep(time.Minute)
		down.Store(false)
		time.Sleep(24 * time.Hour)
		if n := db.Counts().Pending; n != 0 {
			t.Errorf("%d of 20 still pending a day after the destination recovered", n)
		}
		close(release)
		synctest.Wait()
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// Nor does it use up the last slot of one that is up.
func TestAnUpLaneWithAHungAttemptMoves(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "a day in virtual time")
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		release := make(chan struct{})
		var n atomic.Int64
		to := &script{answer: func(_ context.Context, m holdfast.Message) error {
			switch {
			case m.ID == "a-0" && m.Attempt.Number == 1:
				<-release
			case n.Add(1) <= 3:
				return errTransient
			}
			return nil
		}}
		enqueue(t, db, numbered(4, "a")...)
		d := &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {Deliverer: to, Timeout: time.Second, Limit: 4}}}
		stop := dispatch(t, d)
		time.Sleep(24 * time.Hour)
		if n := db.Counts().Pending; n != 0 {
			t.Errorf("%d of 4 still pending", n)
		}
		close(release)
		synctest.Wait()
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A busy peer is not hammered by probes.
func TestAProbeThatDoesNotBeginIsNotRepeatedAtOnce(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		to := &script{answer: always(errTransient)}
		enqueue(t, db, numbered(10, "a")...)
		stop := dispatch(t, &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {Deliverer: to}}})
		time.Sleep(time.Second)
		before := to.count()
		to.become(func(context.Context, holdfast.Message) error {
			time.Sleep(5 * time.Millisecond)
			return &holdfast.Failure{Outcome: holdfast.NotStarted, Code: "not_started"}
		})
		time.Sleep(20 * time.Second)
		if n := to.count() - before; n > 50 {
			t.Errorf("%d probes in 20 s", n)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// NO-09 with a real HTTP client, which reports the cause of a cancellation.
func TestAStopDoesNotChargeRealHTTP(t *testing.T) {
	t.Parallel()
	db := openStore(t)
	defer closeStore(t, db)
	began := make(chan struct{}, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		_, _ = io.Copy(io.Discard, r.Body) // read to its end, the server hears that the caller has gone
		<-r.Context().Done()
	}))
	defer srv.Close()
	c, err := transport.NewClient(transport.ClientConfig{URL: srv.URL, Source: "test"})
	if err != nil {
		t.Fatal(err)
	}
	id := enqueue(t, db, holdfast.Message{Destination: "a"})[0]
	stop := dispatch(t, &holdfast.Dispatcher{Store: db, Grace: 100 * time.Millisecond, Routes: map[string]holdfast.Route{"a": {Deliverer: c}}})
	<-began
	if err := stop(); err != nil {
		t.Error(err)
	}
	r := record(t, db, id)
	if r.Failures != 0 {
		t.Errorf("charged %d: %q, due in %s", r.Failures, r.LastError, time.Until(r.Due))
	}
}

// A lane that is down and then has a fault is held over a restart too.
func TestAFaultOfALaneThatIsDownIsKept(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		to := &script{answer: always(errUnreachable)}
		enqueue(t, db, numbered(10, "a")...)
		d := &holdfast.Dispatcher{Store: db, Lanes: db, Routes: map[string]holdfast.Route{"a": {Deliverer: to}}}
		stop := dispatch(t, d)
		time.Sleep(time.Second)
		to.become(always(errLaneFault))
		time.Sleep(time.Hour)
		f, err := db.LaneFaults(t.Context())
		if s := d.Status()[0]; s.Held && len(f) == 0 {
			t.Errorf("held in memory (%s), nothing kept: %v %v", s.Problem, f, err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// Parking a message without asking anybody says nothing about the destination.
func TestABudgetSpentIsNoSignOfLife(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		to := &script{answer: always(errTransient)}
		enqueue(t, db, numbered(3, "a")...)
		d := &holdfast.Dispatcher{Store: db, Lanes: db, Routes: map[string]holdfast.Route{"a": {Deliverer: to, Retry: holdfast.RetryPolicy{Attempts: 50}}}}
		stop := dispatch(t, d)
		time.Sleep(10 * time.Minute)
		to.become(always(errLaneFault))
		time.Sleep(10 * time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if err := db.SetLaneFault(t.Context(), "a", "credentials refused"); err != nil {
			t.Fatal(err)
		}
		// the operator lowers the budget; a restart
		before := to.count()
		d = &holdfast.Dispatcher{Store: db, Lanes: db, Routes: map[string]holdfast.Route{"a": {Deliverer: to, Retry: holdfast.RetryPolicy{Attempts: 2}}}}
		stop = dispatch(t, d)
		time.Sleep(time.Hour)
		if s := d.Status()[0]; s.Up && to.count() == before {
			t.Errorf("the lane is up, and nothing was ever sent since: %+v", s)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// Edge case 48: messages that always fail do not stand in the way of those that do not.
func TestPoisonDoesNotStarveAHealthyDestination(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		to := &script{answer: func(_ context.Context, m holdfast.Message) error {
			if m.Endpoint == "Bad" {
				return errTransient
			}
			return nil
		}}
		var bad []holdfast.Message
		for i := range 20 {
			bad = append(bad, holdfast.Message{ID: holdfast.ID(fmt.Sprint("bad-", i)), Destination: "a", Endpoint: "Bad"})
		}
		enqueue(t, db, bad...)
		stop := dispatch(t, &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {Deliverer: to}}})
		time.Sleep(time.Minute)
		sent := map[holdfast.ID]time.Time{}
		for i := range 60 {
			id := holdfast.ID(fmt.Sprint("good-", i))
			enqueue(t, db, holdfast.Message{ID: id, Destination: "a", Endpoint: "Good"})
			sent[id] = time.Now()
			time.Sleep(time.Minute)
		}
		worst, n := time.Duration(0), 0
		for _, a := range to.tries() {
			if at, ok := sent[a.id]; ok {
				n++
				worst = max(worst, a.at.Sub(at))
			}
		}
		if worst > 10*time.Minute {
			t.Errorf("a good message waited %s for a destination that was never away", worst)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// Lanes that hold much leave the others theirs.
func TestSilentLanesDoNotUseUpTheClaims(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		hole := &script{answer: func(ctx context.Context, _ holdfast.Message) error { <-ctx.Done(); return ctx.Err() }}
		routes := map[string]holdfast.Route{"good": {Deliverer: &script{}}}
		for i := range 25 {
			name := fmt.Sprintf("hole-%d", i)
			routes[name] = holdfast.Route{Deliverer: hole, Limit: 1000}
			enqueue(t, db, numbered(850, name)...)
		}
		stop := dispatch(t, &holdfast.Dispatcher{Store: db, Routes: routes})
		time.Sleep(2 * time.Second)
		began := time.Now()
		enqueue(t, db, holdfast.Message{ID: "m", Destination: "good"})
		for record(t, db, "m").State != holdfast.Delivered {
			time.Sleep(time.Second)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("the healthy destination waited %s", took)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// OI-10: a sender without a TTL that comes back after the retention is refused.
func TestALateSenderWithoutATTLHasOneEffect(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		out, in := openStore(t), openStore(t)
		defer closeStore(t, out)
		defer closeStore(t, in)
		var effects atomic.Int64
		e := &holdfast.Endpoints{Log: in, Map: map[string]holdfast.Endpoint{"Book": {Forward: holdfast.DelivererFunc(func(_ context.Context, m holdfast.Message) (holdfast.Receipt, error) {
			effects.Add(1)
			return holdfast.Receipt{ID: m.ID}, nil
		})}}}
		var lost atomic.Bool
		lost.Store(true)
		to := &script{answer: func(ctx context.Context, m holdfast.Message) error {
			_, err := e.Receive(ctx, m)
			if lost.Load() {
				return &holdfast.Failure{Code: "connection_lost", MaybeDelivered: true}
			}
			return err
		}}
		enqueue(t, out, holdfast.Message{ID: "m", Destination: "a", Endpoint: "Book"})
		routes := map[string]holdfast.Route{"a": {Deliverer: to, ChargeAll: true}}
		stop := dispatch(t, &holdfast.Dispatcher{Store: out, Routes: routes})
		time.Sleep(time.Second)
		_ = stop() // the sender is switched off, e.g. over a holiday
		lost.Store(false)
		time.Sleep(9 * 24 * time.Hour)
		for {
			_, more, err := in.SweepInbox(t.Context(), holdfast.DefaultInboxRetention)
			if err != nil {
				t.Fatal(err)
			}
			if !more {
				break
			}
		}
		stop = dispatch(t, &holdfast.Dispatcher{Store: out, Routes: routes})
		time.Sleep(time.Hour)
		if n := effects.Load(); n != 1 {
			t.Errorf("%d effects behind our own inbox; message is %s", n, record(t, out, "m").State)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// What no budget ends is not tried in a loop, whatever the policy says.
func TestUnchargedFailuresAreNotRepeatedAtOnce(t *testing.T) {
	t.Parallel()
	for _, e := range []*holdfast.Failure{errUnreachable, errLaneFault} {
		racetest.Bubble(t, func(t *testing.T) {
			db := openStore(t)
			defer closeStore(t, db)
			to := &script{answer: func(context.Context, holdfast.Message) error { time.Sleep(5 * time.Millisecond); return e }}
			enqueue(t, db, numbered(2, "a")...)
			stop := dispatch(t, &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {Deliverer: to, Retry: holdfast.RetryPolicy{List: []time.Duration{0, 0, 0}, Jitter: -1, Attempts: 4}}}})
			time.Sleep(10 * time.Second)
			if n := to.count(); n > 100 {
				t.Errorf("%s: %d attempts in 10 s, uncharged, without end", e.Outcome, n)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A deliverer that returns a nil *Failure in an error does not end the process.
func TestANilFailureIsAFailure(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		enqueue(t, db, holdfast.Message{ID: "m", Destination: "a"})
		stop := dispatch(t, &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {Deliverer: holdfast.DelivererFunc(
			func(context.Context, holdfast.Message) (holdfast.Receipt, error) {
				var f *holdfast.Failure
				return holdfast.Receipt{}, f
			})}}})
		time.Sleep(time.Hour)
		wantState(t, db, "m", holdfast.Parked)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// SF-24: a failing observer changes nothing.
func TestAPanickingObserverChangesNothing(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		enqueue(t, db, holdfast.Message{ID: "m", Destination: "a"})
		stop := dispatch(t, &holdfast.Dispatcher{Store: db, Observer: panicObserver{}, Routes: map[string]holdfast.Route{"a": {Deliverer: &script{}}}})
		time.Sleep(time.Hour)
		wantState(t, db, "m", holdfast.Delivered)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// What a destination puts off while it does its work is charged to the message,
// and slows nobody down, alone and in batches; beside refused credentials that
// counts for nothing. Failures that come at once take no more messages than the
// lane's limit: its down lane still has some that nobody tried.
func TestAMessageThatIsPutOffIsASuccessOfItsLane(t *testing.T) {
	t.Parallel()
	bad := func(o holdfast.Outcome, served bool) *holdfast.Failure {
		return &holdfast.Failure{Outcome: o, Code: "mailbox_full", Served: served, Err: fmt.Errorf("mailbox full")}
	}
	for name, c := range map[string]struct {
		failure *holdfast.Failure
		up      bool
		charged bool
	}{
		"put off":     {bad(holdfast.Transient, true), true, true},
		"not charged": {bad(holdfast.Unreachable, true), true, false},
		"failed":      {bad(holdfast.Transient, false), false, true},
		"lane fault":  {bad(holdfast.LaneFault, true), false, false},
	} {
		for _, size := range []int{1, 8} {
			t.Run(fmt.Sprint(name, " by ", size), func(t *testing.T) {
				t.Parallel()
				racetest.Bubble(t, func(t *testing.T) {
					db := openStore(t)
					defer closeStore(t, db)
					b := &batcher{size: func() int { return size }, do: func(_ context.Context, ms []holdfast.Message) []holdfast.Result {
						r := make([]holdfast.Result, len(ms))
						for i := range r {
							r[i].Err = c.failure
						}
						return r
					}}
					enqueue(t, db, numbered(64, "a")...)
					d := &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {Deliverer: b, Retry: holdfast.RetryPolicy{First: time.Hour, Factor: 1, Jitter: -1}}}}
					stop := dispatch(t, d)
					time.Sleep(10 * time.Second)
					tried, charged := 0, 0
					for i := range 64 {
						r := record(t, db, holdfast.ID(fmt.Sprint("a-", i)))
						tried, charged = tried+r.Tries, charged+r.Failures
					}
					if s := d.Status()[0]; s.Up != c.up || c.up != (tried == 64) || c.charged != (charged > 0) {
						t.Errorf("after %d tries, %d charged, the lane is %+v", tried, charged, s)
					}
					if err := stop(); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}
