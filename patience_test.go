package holdfast_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// webhook is the schedule of WH-03, every attempt charged.
func webhook(to holdfast.Deliverer, own bool) holdfast.Route {
	return holdfast.Route{
		Deliverer: to, ChargeAll: true, OwnSchedule: own,
		Retry: holdfast.RetryPolicy{First: 25 * time.Second, Factor: 4, Max: 52000 * time.Second, Jitter: -1, Attempts: 8},
	}
}

// F1-49: how often a lane is probed is its own affair. With a schedule of
// hours the lane still finds out within minutes that the destination is back,
// and what is new is tried within seconds.
func TestALaneIsProbedWithAPatienceOfItsOwn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		charged, fresh bool
		limit          time.Duration
	}{
		"a new message":            {true, true, 11 * time.Second},
		"a new message, uncharged": {false, true, 11 * time.Second},
		"no new message":           {false, false, 5*time.Minute + 2*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				db := openStore(t)
				defer closeStore(t, db)
				to := &script{answer: always(errUnreachable)}
				route := webhook(to, false)
				route.ChargeAll = c.charged
				enqueue(t, db, numbered(10, "a")...)
				stop := dispatch(t, &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": route}})
				time.Sleep(3 * time.Hour)
				tried := to.count()
				to.become(nil)
				if c.fresh {
					enqueue(t, db, holdfast.Message{ID: "new", Destination: "a"})
				}
				time.Sleep(c.limit)
				if got := to.count(); got == tried {
					t.Errorf("%d attempts in 3 h, and none in %s after it was back", tried, c.limit)
				}
				if c.fresh {
					wantState(t, db, "new", holdfast.Delivered)
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// F1-49, WH-02, WH-03: where a destination asks for it, each message keeps
// exactly its own schedule, whatever became of the others, and what comes when
// the destination is back goes at once.
func TestEachMessageKeepsItsOwnSchedule(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		to := &script{answer: always(errUnreachable)}
		ids := enqueue(t, db, numbered(10, "a")...)
		d := &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": webhook(to, true)}}
		stop := dispatch(t, d)
		time.Sleep(3 * time.Hour)
		want := []time.Duration{0, 25 * time.Second, 125 * time.Second, 525 * time.Second, 2125 * time.Second, 8525 * time.Second}
		began := to.tries()[0].at
		for _, id := range ids {
			var got []time.Duration
			for _, a := range to.tries() {
				if a.id == id {
					got = append(got, a.at.Sub(began).Round(100*time.Millisecond))
				}
			}
			if diff := cmp.Diff(got, want); diff != "" {
				t.Errorf("attempts of %s (-got +want):\n%s", id, diff)
			}
		}
		if s := d.Status()[0]; s.Up || s.Problem == "" || s.Limit != 20 {
			t.Errorf("the lane is %+v; want it shown as down, with all its requests", s)
		}
		to.become(nil)
		enqueue(t, db, holdfast.Message{ID: "new", Destination: "a"})
		synctest.Wait()
		wantState(t, db, "new", holdfast.Delivered)
		synctest.Wait()
		wantState(t, db, ids[0], holdfast.Pending) // not sooner for that
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A Retry-After is kept, also for what is new; refused credentials are not
// tried every few seconds.
func TestWhatIsNewDoesNotHurryALaneThatAsksForTime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		failure *holdfast.Failure
		most    int
	}{
		"retry-after": {&holdfast.Failure{Code: "busy", RetryAfter: 4 * time.Minute, Err: errTransient}, 16},
		"held":        {errLaneFault, 70},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				db := openStore(t)
				defer closeStore(t, db)
				to := &script{answer: always(c.failure)}
				enqueue(t, db, numbered(10, "a")...)
				stop := dispatch(t, &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {Deliverer: to}}})
				time.Sleep(time.Second)
				before := to.count()
				for range 720 { // an hour
					enqueue(t, db, holdfast.Message{Destination: "a"})
					time.Sleep(5 * time.Second)
				}
				if got := to.count() - before; got > c.most || got < 10 {
					t.Errorf("%d attempts in an hour, want 10 to %d", got, c.most)
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
