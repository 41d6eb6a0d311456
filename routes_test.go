package holdfast_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// secondEach takes a second for each message, and then says what it is told to.
func secondEach(err error) *script {
	return &script{answer: func(context.Context, holdfast.Message) error {
		time.Sleep(time.Second)
		return err
	}}
}

func setRoute(tb testing.TB, d *holdfast.Dispatcher, destination string, route holdfast.Route) (former <-chan struct{}) {
	tb.Helper()
	former, err := d.SetRoute(destination, route)
	if err != nil {
		tb.Fatal(err)
	}
	return former
}

func closed(c <-chan struct{}) bool {
	synctest.Wait()
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Issue 13, 2: a route that is added while the dispatcher runs gets what waits for it
// at once, unless a person has paused its destination; it stays for the next run.
func TestARouteIsAddedWhileTheDispatcherRuns(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		to := &script{}
		d := &holdfast.Dispatcher{Store: db, Lanes: db, Poll: time.Hour}
		enqueue(t, db, holdfast.Message{ID: "before", Destination: "a"}, holdfast.Message{ID: "paused", Destination: "b"})
		if !closed(setRoute(t, d, "c", holdfast.Route{Deliverer: to})) {
			t.Error("before Run something is in hand")
		}
		stop := dispatch(t, d)
		time.Sleep(2 * time.Minute)
		if s, _ := d.Lane("c"); s.Destination != "c" || to.count() != 0 {
			t.Errorf("the lane set before Run: %+v; %d attempts", s, to.count())
		}
		if err := d.Pause(t.Context(), "b", "anna"); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "b"} {
			if !closed(setRoute(t, d, name, holdfast.Route{Deliverer: to})) {
				t.Errorf("a new route of %s has a former one", name)
			}
		}
		wantState(t, db, "before", holdfast.Delivered)
		wantState(t, db, "paused", holdfast.Pending)
		if err := d.Resume(t.Context(), "b", "anna"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		wantState(t, db, "paused", holdfast.Delivered)
		if err := stop(); err != nil {
			t.Error(err)
		}
		stop = dispatch(t, d)
		enqueue(t, db, holdfast.Message{ID: "again", Destination: "a"})
		synctest.Wait()
		wantState(t, db, "again", holdfast.Delivered)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// Issue 13, 2: what is in hand when a route is changed ends by the one of before, which
// is told when nothing of it is in hand; the next attempt is by the new one.
func TestARouteIsChangedWhileAttemptsAreInHand(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		before, after := secondEach(errTransient), &script{}
		once := holdfast.RetryPolicy{Attempts: 1}
		d := &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {Deliverer: before, Retry: once, Limit: 1}}}
		stop := dispatch(t, d)
		enqueue(t, db, numbered(3, "a")...)
		time.Sleep(500 * time.Millisecond)
		former := setRoute(t, d, "a", holdfast.Route{Deliverer: after, Limit: 7, Timeout: time.Minute})
		if closed(former) || after.count() != 2 {
			t.Errorf("former is told of, and %d are tried by the new one; want 2 and one in hand", after.count())
		}
		if s := statusOf(t, d, "a"); s.Timeout != time.Minute || s.Limit != 5 {
			t.Errorf("status %+v", s)
		}
		time.Sleep(time.Second)
		if !closed(former) || before.count() != 1 {
			t.Errorf("after its end former is not told of, or has %d attempts, want 1", before.count())
		}
		wantState(t, db, "a-0", holdfast.Parked)
		wantState(t, db, "a-1", holdfast.Delivered)
		wantState(t, db, "a-2", holdfast.Delivered)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// Issue 13, 2: a changed route has a lane that is down, or held, tried at once.
func TestAChangedRouteIsTriedAtOnce(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		d := &holdfast.Dispatcher{Store: db, Lanes: db, Routes: map[string]holdfast.Route{"a": {Deliverer: &script{answer: always(errLaneFault)}}}}
		stop := dispatch(t, d)
		enqueue(t, db, numbered(10, "a")...)
		time.Sleep(time.Hour)
		for statusOf(t, d, "a").NextProbe < 2*time.Minute {
			time.Sleep(time.Second)
		}
		if s := statusOf(t, d, "a"); !s.Held {
			t.Fatalf("not held: %+v", s)
		}
		setRoute(t, d, "a", holdfast.Route{Deliverer: &script{}})
		enqueue(t, db, holdfast.Message{ID: "new", Destination: "a"})
		time.Sleep(time.Second)
		wantState(t, db, "new", holdfast.Delivered)
		if s := statusOf(t, d, "a"); s.Held || !s.Up {
			t.Errorf("it was tried, and is not up: %+v", s)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// Issue 13, 2: a route that is removed delivers what is in hand; what was only claimed
// goes back uncharged and waits with the others, for a route or its TTL. Who waits is
// told, and why the lane was held is forgotten.
func TestARouteIsRemovedWhileAttemptsAreInHand(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		to := secondEach(nil)
		waiters := &holdfast.Waiters{}
		d := &holdfast.Dispatcher{Store: db, Lanes: db, Waiters: waiters, Routes: map[string]holdfast.Route{"a": {Deliverer: to, Limit: 2}, "held": {Deliverer: &script{answer: always(errLaneFault)}}}}
		stop := dispatch(t, d)
		enqueue(t, db, numbered(10, "a")...)
		enqueue(t, db, holdfast.Message{ID: "h", Destination: "held"})
		s := &holdfast.Submitter{Enqueuer: db, Outbox: db, Waiters: waiters, Lane: d.Lane}
		told := make(chan time.Duration, 1)
		go func() {
			began := time.Now()
			_, _ = s.Submit(t.Context(), holdfast.Message{ID: "w", Destination: "a", Endpoint: "E"}, time.Minute)
			told <- time.Since(began)
		}()
		time.Sleep(500 * time.Millisecond)
		former := d.RemoveRoute("a")
		<-d.RemoveRoute("held")
		<-d.RemoveRoute("never there")
		if closed(former) {
			t.Error("former is told of while two are in hand")
		}
		if waited := <-told; waited != 500*time.Millisecond {
			t.Errorf("who waited for a message was told after %s", waited)
		}
		if s, known := d.Lane("a"); !known || s.Destination != "" {
			t.Errorf("the lane is there: %+v", s)
		}
		time.Sleep(time.Second)
		if !closed(former) || to.count() != 2 || db.Counts().Lanes["a"].Pending != 9 {
			t.Errorf("%d were begun and %d wait, want 2 and 9", to.count(), db.Counts().Lanes["a"].Pending)
		}
		if r := record(t, db, "a-5"); r.State != holdfast.Pending || r.Tries != 0 || r.Failures != 0 {
			t.Errorf("what waits: %+v", r)
		}
		if list, err := db.LaneFaults(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("faults are kept: %v, %v", list, err)
		}
		time.Sleep(2 * time.Minute)
		unserved := map[string]holdfast.Cause{}
		for _, s := range d.Status() {
			if s.Standstill != nil {
				unserved[s.Destination] = s.Standstill.Cause
			}
		}
		if unserved["a"] != holdfast.CauseNoRoute || to.count() != 2 {
			t.Errorf("two minutes later: %v, %d attempts", unserved, to.count())
		}
		setRoute(t, d, "a", holdfast.Route{Deliverer: to, Limit: 20})
		time.Sleep(10 * time.Second)
		if n := db.Counts().Lanes["a"].Pending; n != 0 || to.count() != 11 {
			t.Errorf("with a route again %d wait after %d attempts, want none after 11", n, to.count())
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// Issue 13, 2: a route that cannot be is refused by its name, and changes nothing.
func TestARouteThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	to := &script{}
	for name, c := range map[string]struct {
		destination string
		route       holdfast.Route
		want        string
	}{
		"no deliverer":     {"erp", holdfast.Route{}, "route erp"},
		"negative limit":   {"erp", holdfast.Route{Deliverer: to, Limit: -1}, "route.erp.limit"},
		"negative poll":    {"erp", holdfast.Route{Deliverer: to, Poll: -1}, "route.erp.poll"},
		"negative last":    {"erp", holdfast.Route{Deliverer: to, Last: -1}, "route.erp.last"},
		"a policy's fault": {"erp", holdfast.Route{Deliverer: to, Retry: holdfast.RetryPolicy{Attempts: -5}}, "route erp"},
		"no name":          {"", holdfast.Route{Deliverer: to}, "destination"},
		"the callbacks'":   {holdfast.EndedDestination, holdfast.Route{Deliverer: to}, "OnParked"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &holdfast.Dispatcher{}
			if former, err := d.SetRoute(c.destination, c.route); former != nil || !errors.Is(err, holdfast.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want invalid with %q", err, c.want)
			}
		})
	}
}

// Issue 13, 2: whoever changes routes at once, and while messages come and the
// dispatcher stops and starts: each message is delivered once its destination has a
// route, and every former route is told of.
func TestRoutesChangeAtOnce(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		names := []string{"a", "b", "c", "d"}
		to := &script{answer: func(context.Context, holdfast.Message) error { time.Sleep(30 * time.Millisecond); return nil }}
		d := &holdfast.Dispatcher{Store: db, Lanes: db}
		stop := dispatch(t, d)
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				for n := range 40 {
					name := names[(i+n)%len(names)]
					if (i+n)%3 == 0 {
						<-d.RemoveRoute(name)
					} else {
						if _, err := d.SetRoute(name, holdfast.Route{Deliverer: to, Limit: 1 + n%5}); err != nil {
							t.Error(err)
						}
					}
					time.Sleep(time.Duration(7+i) * time.Millisecond)
				}
			})
		}
		for n := range 40 {
			ms := numbered(4, "m"+string(rune('A'+n)))
			for i := range ms {
				ms[i].Destination = names[i]
			}
			enqueue(t, db, ms...)
			time.Sleep(10 * time.Millisecond)
			if n == 20 {
				if err := stop(); err != nil {
					t.Error(err)
				}
				stop = dispatch(t, d)
			}
		}
		all.Wait()
		var formers []<-chan struct{}
		for _, name := range names {
			formers = append(formers, setRoute(t, d, name, holdfast.Route{Deliverer: to}))
		}
		time.Sleep(time.Minute)
		for _, former := range formers {
			if !closed(former) {
				t.Error("a former route is not told of")
			}
		}
		if c := db.Counts(); c.Pending != 0 || c.Parked != 0 || to.count() != 160 {
			t.Errorf("%d wait and %d are parked after %d attempts, want 160", c.Pending, c.Parked, to.count())
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
