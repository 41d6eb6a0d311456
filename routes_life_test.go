package holdfast_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// F1-40: the destination of the notices has no route of the user's to remove.
func TestCallbacksStayWhenTheirRouteIsRemoved(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		d := refusing(db)
		var c told
		d.OnParked = c.call
		stop := dispatch(t, d)
		synctest.Wait()
		if !closed(d.RemoveRoute(holdfast.EndedDestination)) {
			t.Error("there is a former route")
		}
		enqueue(t, db, holdfast.Message{ID: "m", Destination: "a"})
		time.Sleep(10 * time.Minute)
		wantTold(t, &c, "m")
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// slowToForget answers late to one that asks for no callbacks.
type slowToForget struct{ holdfast.Store }

func (s slowToForget) NotifyEnded(ctx context.Context, parked, expired bool) (bool, error) {
	if !parked && !expired {
		time.Sleep(time.Second)
	}
	return s.Store.NotifyEnded(ctx, parked, expired)
}

// F1-40: callbacks stay on when a dispatcher without any has begun just before theirs,
// and the store is slow to answer it.
func TestCallbacksStayWhenTwoDispatchersBeginAtOnce(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		c := &told{}
		first := refusing(db)
		first.OnParked = c.call
		second := &holdfast.Dispatcher{Store: slowToForget{db}, Routes: map[string]holdfast.Route{"b": {Deliverer: &script{}}}}
		stopSecond := dispatch(t, second)
		synctest.Wait()
		stopFirst := dispatch(t, first)
		time.Sleep(2 * time.Second)
		enqueue(t, db, holdfast.Message{ID: "one", Destination: "a"})
		time.Sleep(time.Minute)
		wantTold(t, c, "one")
		for _, stop := range []func() error{stopSecond, stopFirst} {
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
	})
}

// Issue 13, 2: lanes that were removed while they were down cost nothing any more.
func TestARemovedLaneThatWasDownIsForgotten(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		d := &holdfast.Dispatcher{Store: db, Lanes: db}
		stop := dispatch(t, d)
		for i := range 10 {
			name := strconv.Itoa(i)
			enqueue(t, db, holdfast.Message{Destination: name}, holdfast.Message{Destination: name})
			setRoute(t, d, name, holdfast.Route{Deliverer: &script{answer: always(errLaneFault)}})
			time.Sleep(time.Second)
			<-d.RemoveRoute(name)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := d.BusyLanes(); n > 0 {
			t.Errorf("%d removed lanes are looked at", n)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// B2: what a busy lane keeps ready does not shrink for a poll of many lanes at rest.
func TestAPollShrinksNoBusyLane(t *testing.T) {
	t.Parallel()
	if after := holdfast.TargetAfterPoll(2000, 1000); after != 2000 {
		t.Errorf("a target of 2000 is %d after a poll", after)
	}
}

// whenTold takes until end is closed, and counts what is in hand.
func whenTold(end <-chan struct{}, in *atomic.Int32) *script {
	return &script{answer: func(context.Context, holdfast.Message) error {
		in.Add(1)
		defer in.Add(-1)
		<-end
		return nil
	}}
}

// Issue 13, 2: former is told of when the attempt has returned, also where that outlives
// its Run, and whether the route was changed before the stop, during it or after it.
func TestFormerIsToldOfAfterAnAttemptThatOutlivesItsRun(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"before", "during", "after", "in the next run"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				db := openStore(t)
				defer closeStore(t, db)
				end, in := make(chan struct{}), atomic.Int32{}
				d := &holdfast.Dispatcher{
					Store: db, Grace: time.Second,
					Routes: map[string]holdfast.Route{"a": {Deliverer: whenTold(end, &in), Timeout: time.Second, Last: time.Second}},
				}
				stop := dispatch(t, d)
				enqueue(t, db, holdfast.Message{ID: "m", Destination: "a"})
				time.Sleep(100 * time.Millisecond)
				var former <-chan struct{}
				change := func(now string) {
					if now == when {
						former = d.RemoveRoute("a")
					}
				}
				change("before")
				synctest.Wait()
				ended := make(chan error, 1)
				go func() { ended <- stop() }()
				time.Sleep(500 * time.Millisecond)
				change("during")
				if err := <-ended; err == nil {
					t.Error("the stop does not say that an attempt is in hand")
				}
				change("after")
				stop = dispatch(t, d)
				time.Sleep(time.Second)
				change("in the next run")
				if closed(former) || in.Load() != 1 {
					t.Errorf("former is told of %t while %d are in hand", closed(former), in.Load())
				}
				close(end)
				if !closed(former) {
					t.Error("former is never told of")
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Issue 13, 2: attempts by the route of before do not hold the one of now.
func TestARouteIsNotHeldForTheOneBefore(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		d := &holdfast.Dispatcher{Store: db, Lanes: db, Routes: map[string]holdfast.Route{"a": {Deliverer: secondEach(errLaneFault)}}}
		stop := dispatch(t, d)
		enqueue(t, db, numbered(5, "a")...)
		time.Sleep(500 * time.Millisecond)
		setRoute(t, d, "a", holdfast.Route{Deliverer: &script{}})
		time.Sleep(600 * time.Millisecond)
		if s := statusOf(t, d, "a"); s.Held || !s.Up {
			t.Errorf("held for what the route of before met: %+v", s)
		}
		if list, err := db.LaneFaults(t.Context()); err != nil || len(list) > 0 {
			t.Errorf("faults are kept: %v, %v", list, err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// Issue 13, 2: who waits for a message of a route that was removed and set again gets its
// attempt, though one by the removed route ends meanwhile and could not begin.
func TestAWaitIsNotEndedByARemovedRoute(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		busy := &holdfast.Failure{Outcome: holdfast.NotStarted, Code: "busy", Err: context.DeadlineExceeded}
		old := &script{answer: func(context.Context, holdfast.Message) error { time.Sleep(2 * time.Second); return busy }}
		w := &holdfast.Waiters{}
		d := &holdfast.Dispatcher{Store: db, Lanes: db, Waiters: w, Routes: map[string]holdfast.Route{"a": {Deliverer: old, Limit: 1}}}
		stop := dispatch(t, d)
		enqueue(t, db, holdfast.Message{ID: "o", Destination: "a"})
		time.Sleep(500 * time.Millisecond)
		d.RemoveRoute("a")
		synctest.Wait()
		setRoute(t, d, "a", holdfast.Route{Deliverer: secondEach(nil), Limit: 1})
		time.Sleep(time.Second)
		s := &holdfast.Submitter{Enqueuer: db, Outbox: db, Waiters: w, Lane: d.Lane}
		got, err := s.Submit(t.Context(), holdfast.Message{ID: "w", Destination: "a", Endpoint: "E"}, time.Minute)
		if err != nil || got.Attempt == nil {
			t.Errorf("got %+v, %v: want its attempt", got, err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// leaving is a store that notes when its dispatcher leaves a destination.
type leaving struct {
	*several
	left atomic.Int32
}

func (s *leaving) Leave(string) { s.left.Add(1) }

// Issue 13, 2: however often a route is removed and set, the limit holds, and the part of
// other nodes grows only when nothing is in hand here.
func TestTheLimitHoldsWhileARouteIsRemovedAndSet(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		store := &leaving{several: &several{Store: db}}
		store.share.Store(100)
		var in, most atomic.Int32
		to := &script{answer: func(context.Context, holdfast.Message) error {
			most.Store(max(most.Load(), in.Add(1)))
			time.Sleep(10 * time.Second)
			in.Add(-1)
			return nil
		}}
		d := &holdfast.Dispatcher{Store: store, Routes: map[string]holdfast.Route{"a": {Deliverer: to, Limit: 1}}}
		stop := dispatch(t, d)
		enqueue(t, db, numbered(9, "a")...)
		for range 4 {
			time.Sleep(time.Second)
			d.RemoveRoute("a")
			synctest.Wait()
			setRoute(t, d, "a", holdfast.Route{Deliverer: to, Limit: 1})
		}
		time.Sleep(time.Second)
		if most.Load() != 1 || store.left.Load() != 0 {
			t.Errorf("%d at a time, left %d times; want 1 and never", most.Load(), store.left.Load())
		}
		time.Sleep(20 * time.Second)
		if most.Load() != 1 || to.count() < 2 {
			t.Errorf("%d at a time, %d attempts: it does not go on", most.Load(), to.count())
		}
		former := d.RemoveRoute("a")
		if closed(former) || store.left.Load() != 0 {
			t.Errorf("left %d times while an attempt is in hand", store.left.Load())
		}
		<-former
		if err := stop(); err != nil {
			t.Error(err)
		}
		if store.left.Load() != 1 {
			t.Errorf("left %d times after the last attempt, want once", store.left.Load())
		}
	})
}

// Issue 13, 2: a route that is set again as it is leaves the lane as it is.
func TestAnEqualRouteChangesNothing(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		to := &script{answer: always(errLaneFault)}
		d := &holdfast.Dispatcher{Store: db, Lanes: db, Routes: map[string]holdfast.Route{"a": {Deliverer: to}}}
		stop := dispatch(t, d)
		enqueue(t, db, numbered(3, "a")...)
		for time.Sleep(time.Minute); statusOf(t, d, "a").NextProbe < time.Second; {
			time.Sleep(time.Second)
		}
		n := to.count()
		if !closed(setRoute(t, d, "a", holdfast.Route{Deliverer: to})) {
			t.Error("there is a former route")
		}
		if to.count() != n {
			t.Error("it was probed")
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// B2: a map that was large once is not gone over for ever.
func TestALargeMapIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]struct {
		again bool
		peak  int
	}{10: {true, 10}, 5000: {false, 1}} {
		if again, busy, peak := holdfast.KeepsSmallMaps(n); again != want.again || busy != 1 || peak != want.peak {
			t.Errorf("of %d entries: used again %t, %d are busy, room for %d; want %+v", n, again, busy, peak, want)
		}
	}
}

// What is kept of why a destination was held goes with its route, also where the lane
// was held by another process only.
func TestARemovedRouteKeepsNoFaultOfOthers(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		d := &holdfast.Dispatcher{Store: db, Lanes: db, Routes: map[string]holdfast.Route{"a": {Deliverer: &script{}}}}
		stop := dispatch(t, d)
		synctest.Wait()
		if err := db.SetLaneFault(t.Context(), "a", "refused elsewhere"); err != nil {
			t.Fatal(err)
		}
		<-d.RemoveRoute("a")
		if err := stop(); err != nil {
			t.Error(err)
		}
		if list, err := db.LaneFaults(t.Context()); err != nil || len(list) > 0 {
			t.Errorf("kept %v, %v", list, err)
		}
	})
}

// A removal counts, and leaves the lane, also where the dispatcher is told to stop first.
func TestARouteThatIsRemovedAtTheStopIsLeft(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		store := &leaving{several: &several{Store: db}}
		store.share.Store(100)
		end, in := make(chan struct{}), atomic.Int32{}
		d := &holdfast.Dispatcher{Store: store, Routes: map[string]holdfast.Route{"a": {Deliverer: whenTold(end, &in)}, "b": {Deliverer: &script{}}}}
		stop := dispatch(t, d)
		enqueue(t, db, holdfast.Message{Destination: "a"})
		time.Sleep(time.Second)
		ended := make(chan error)
		go func() { ended <- stop() }()
		synctest.Wait()
		a, b := d.RemoveRoute("a"), d.RemoveRoute("b")
		close(end)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if store.left.Load() != 2 || !closed(a) || !closed(b) {
			t.Errorf("left %d lanes, want 2", store.left.Load())
		}
	})
}
