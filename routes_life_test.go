package holdfast_test

import (
	"context"
	"strconv"
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
