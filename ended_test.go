package holdfast_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// told is a callback that answers as it is scripted and remembers its calls.
type told struct {
	answer func(n int) error // of call n, from 1; nil: no error

	mu    sync.Mutex
	calls []holdfast.Ended
	at    []time.Time
}

func (c *told) call(_ context.Context, e holdfast.Ended) error {
	c.mu.Lock()
	c.calls, c.at = append(c.calls, e), append(c.at, time.Now())
	n := len(c.calls)
	c.mu.Unlock()
	if c.answer == nil {
		return nil
	}
	return c.answer(n)
}

func (c *told) ids() (list []holdfast.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.calls {
		list = append(list, e.ID)
	}
	return list
}

func wantTold(tb testing.TB, c *told, want ...holdfast.ID) {
	tb.Helper()
	if diff := cmp.Diff(want, c.ids(), cmpopts.EquateEmpty()); diff != "" {
		tb.Errorf("told of (-want +got):\n%s", diff)
	}
}

// refusing is a dispatcher whose destination "a" refuses everything for good.
func refusing(db *sqlite.DB) *holdfast.Dispatcher {
	return &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {Deliverer: &script{answer: always(errPermanent)}}}}
}

func hasEndedLane(d *holdfast.Dispatcher) bool {
	for _, l := range d.Status() {
		if l.Destination == holdfast.EndedDestination {
			return true
		}
	}
	return false
}

func stopped(tb testing.TB, stop func() error) {
	tb.Helper()
	if err := stop(); err != nil {
		tb.Errorf("run: %v", err)
	}
}

// OI-05, OI-06: a callback hears which message ended, and why.
func TestCallbacksAreToldWhatEnded(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		var parked, expired told
		d := refusing(db)
		d.OnParked, d.OnExpired = parked.call, expired.call
		began := time.Now()
		stop := dispatch(t, d)
		enqueue(t, db, holdfast.Message{ID: "p", Destination: "a", CorrelationID: "c", OrderingKey: "o"},
			holdfast.Message{ID: "e", Destination: "nowhere", TTL: time.Minute})
		go (&holdfast.Sweeper{Outbox: db}).Run(t.Context()) //nolint:errcheck // it returns nil
		time.Sleep(2 * time.Minute)
		stopped(t, stop)
		want := holdfast.Ended{
			ID: "p", Source: "test", Destination: "a", Endpoint: "E", Kind: holdfast.Signal, CorrelationID: "c", OrderingKey: "o",
			State: holdfast.Parked, Reason: holdfast.ReasonPermanent, Code: "refused", Error: "refused", Cycle: 1, Tries: 1, At: began,
		}
		if diff := cmp.Diff([]holdfast.Ended{want}, parked.calls, cmpopts.EquateApproxTime(time.Second)); diff != "" {
			t.Errorf("parked (-want +got):\n%s", diff)
		}
		want = holdfast.Ended{
			ID: "e", Source: "test", Destination: "nowhere", Endpoint: "E", Kind: holdfast.Signal,
			State: holdfast.Expired, Cycle: 1, At: began.Add(time.Minute),
		}
		if diff := cmp.Diff([]holdfast.Ended{want}, expired.calls, cmpopts.EquateApproxTime(11*time.Second)); diff != "" {
			t.Errorf("expired (-want +got):\n%s", diff)
		}
	})
}

// At least once: an error or a panic of the callback tries the notice again,
// however often, as the default policy says.
func TestCallbackThatFailsIsToldAgain(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func() error{
		"an error": func() error { return errors.New("mail server down") },
		"a panic":  func() error { panic("mail server down") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				db := openStore(t)
				defer closeStore(t, db)
				c := told{answer: func(n int) error {
					if n <= 8 { // more than the default budget
						return fail()
					}
					return nil
				}}
				d := refusing(db)
				d.OnParked = c.call
				stop := dispatch(t, d)
				enqueue(t, db, holdfast.Message{ID: "m", Destination: "a"})
				time.Sleep(time.Hour)
				stopped(t, stop)
				wantTold(t, &c, "m", "m", "m", "m", "m", "m", "m", "m", "m")
				if wait := c.at[1].Sub(c.at[0]); wait < 2*time.Second || wait > 3*time.Second {
					t.Errorf("told again after %s, want 2 s and a little", wait)
				}
				if n := db.Counts().Pending; n != 0 {
					t.Errorf("%d messages wait", n)
				}
			})
		})
	}
}

// A process that dies while the callback runs leaves a notice on disk: the
// next dispatcher tells again. What is copied is what a crash leaves.
func TestCallbackIsToldAgainAfterACrash(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		crashed := filepath.Join(t.TempDir(), "crashed.db")
		first := told{answer: func(int) error {
			return errors.Join(copyFile(db.Path(), crashed), copyFile(db.Path()+"-wal", crashed+"-wal"))
		}}
		d := refusing(db)
		d.OnParked = first.call
		stop := dispatch(t, d)
		enqueue(t, db, holdfast.Message{ID: "m", Destination: "a"})
		time.Sleep(time.Second)
		stopped(t, stop)
		wantTold(t, &first, "m")

		after := openStoreAt(t, crashed)
		defer closeStore(t, after)
		wantState(t, after, "m", holdfast.Parked)
		var second told
		d = refusing(after)
		d.OnParked = second.call
		stop = dispatch(t, d)
		time.Sleep(time.Minute)
		stopped(t, stop)
		wantTold(t, &second, "m")
	})
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o600)
}

// A stop in the middle of a callback is no call: the next dispatcher tells.
func TestCallbackThatIsCutOffIsToldAgain(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		d := refusing(db)
		d.OnParked = func(ctx context.Context, _ holdfast.Ended) error {
			<-ctx.Done()
			return ctx.Err()
		}
		stop := dispatch(t, d)
		enqueue(t, db, holdfast.Message{ID: "m", Destination: "a"})
		time.Sleep(time.Second)
		stopped(t, stop)
		var c told
		d = refusing(db)
		d.OnParked = c.call
		stop = dispatch(t, d)
		synctest.Wait()
		stopped(t, stop)
		wantTold(t, &c, "m")
	})
}

// Callbacks that are gone leave no notices behind, and no lane that nobody
// needs is shown.
func TestNoticesOfCallbacksThatAreGone(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		failing := told{answer: func(int) error { return errors.New("down") }}
		d := refusing(db)
		d.OnParked = failing.call
		stop := dispatch(t, d)
		enqueue(t, db, holdfast.Message{ID: "1", Destination: "a"})
		time.Sleep(time.Second)
		if !hasEndedLane(d) {
			t.Error("the lane of the callbacks is not shown while there are some")
		}
		stopped(t, stop)
		wantTold(t, &failing, "1")

		d = refusing(db)
		stop = dispatch(t, d)
		enqueue(t, db, holdfast.Message{ID: "2", Destination: "a"})
		time.Sleep(time.Minute)
		stopped(t, stop)
		wantTold(t, &failing, "1") // nobody else was told
		if n := db.Counts().Pending; n != 0 {
			t.Errorf("%d messages wait, want none", n)
		}
		wantState(t, db, "2", holdfast.Parked)

		d = refusing(db)
		stop = dispatch(t, d)
		synctest.Wait()
		if hasEndedLane(d) {
			t.Error("the lane of the callbacks is shown, and there are none")
		}
		stopped(t, stop)
	})
}

// Of two callbacks each hears its own, and what only the other would hear is
// told to nobody.
func TestOneCallbackWithoutTheOther(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		var c told
		d := refusing(db)
		d.OnExpired = c.call
		stop := dispatch(t, d)
		enqueue(t, db, holdfast.Message{ID: "p", Destination: "a"}, holdfast.Message{ID: "e", Destination: "a", Delay: time.Hour, TTL: time.Minute})
		go (&holdfast.Sweeper{Outbox: db}).Run(t.Context()) //nolint:errcheck // it returns nil
		time.Sleep(2 * time.Hour)
		stopped(t, stop)
		wantTold(t, &c, "e")
	})
}

// OI-06: an expired message can be tried again with a new TTL, also by the
// callback itself.
func TestCallbackRequeues(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		to := &script{answer: always(errUnreachable)}
		d := &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {Deliverer: to}}}
		var c told
		d.OnExpired = func(ctx context.Context, e holdfast.Ended) error {
			to.become(nil)
			_, err := db.Requeue(ctx, e.ID, holdfast.Requeue{TTL: time.Hour, Actor: "callback"})
			return errors.Join(err, c.call(ctx, e))
		}
		go (&holdfast.Sweeper{Outbox: db}).Run(t.Context()) //nolint:errcheck // it returns nil
		stop := dispatch(t, d)
		enqueue(t, db, holdfast.Message{ID: "m", Destination: "a", TTL: time.Minute})
		time.Sleep(10 * time.Minute)
		stopped(t, stop)
		wantTold(t, &c, "m")
		r := wantState(t, db, "m", holdfast.Delivered)
		if left := r.Expires.Sub(c.at[0]); r.Cycle != 2 || left < 59*time.Minute || left > time.Hour+time.Second {
			t.Errorf("delivered in cycle %d, which expires after %s; want the second with an hour", r.Cycle, left)
		}
	})
}

// The same holds for expired ones, and for a callback that asks for a pause.
func TestExpiredCallbackIsToldAgain(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		c := told{answer: func(n int) error {
			if n <= 2 {
				return &holdfast.Failure{RetryAfter: time.Hour, Err: errors.New("mail server down")}
			}
			return nil
		}}
		d := refusing(db)
		d.OnExpired = c.call
		go (&holdfast.Sweeper{Outbox: db}).Run(t.Context()) //nolint:errcheck // it returns nil
		stop := dispatch(t, d)
		enqueue(t, db, holdfast.Message{ID: "m", Destination: "nowhere", TTL: time.Minute})
		time.Sleep(5 * time.Hour)
		stopped(t, stop)
		wantTold(t, &c, "m", "m", "m")
		if wait := c.at[2].Sub(c.at[0]); wait < 2*time.Hour || wait > 3*time.Hour {
			t.Errorf("told for the third time after %s, want two hours and a little", wait)
		}
	})
}

// A message that parks again, after a person has tried it again, is told
// again.
func TestEachCycleIsTold(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		var c told
		d := refusing(db)
		d.OnParked = c.call
		stop := dispatch(t, d)
		enqueue(t, db, holdfast.Message{ID: "m", Destination: "a"})
		time.Sleep(time.Second)
		if _, err := db.Requeue(t.Context(), "m", holdfast.Requeue{Actor: "ann"}); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		stopped(t, stop)
		wantTold(t, &c, "m", "m")
		if c.calls[1].Cycle != 2 {
			t.Errorf("cycle %d, want 2", c.calls[1].Cycle)
		}
	})
}

// A notice that the callback refuses for good parks, and makes no notice.
func TestNoticeMakesNoNotice(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "a day in virtual time")
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		c := told{answer: func(int) error { return errPermanent }}
		d := refusing(db)
		d.OnParked, d.OnExpired = c.call, c.call
		stop := dispatch(t, d)
		enqueue(t, db, holdfast.Message{ID: "m", Destination: "a"})
		time.Sleep(24 * time.Hour)
		stopped(t, stop)
		wantTold(t, &c, "m")
		page, err := db.List(t.Context(), holdfast.Query{Destination: holdfast.EndedDestination})
		if err != nil || len(page.Records) != 1 || page.Records[0].State != holdfast.Parked {
			t.Errorf("notices %+v, %v; want one that is parked", page.Records, err)
		}
	})
}

// Nobody can put words into the store's mouth.
func TestEndedDestinationIsTheStores(t *testing.T) {
	t.Parallel()
	db := openStore(t)
	defer closeStore(t, db)
	for _, to := range []string{holdfast.EndedDestination, "$other"} {
		_, err := db.Enqueue(t.Context(), holdfast.Message{Destination: to, Endpoint: "parked"})
		if !errors.Is(err, holdfast.ErrInvalid) || !strings.Contains(err.Error(), "reserved for the library") {
			t.Errorf("enqueue for %s: got %v, want ErrInvalid", to, err)
		}
	}
	d := &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{holdfast.EndedDestination: {Deliverer: &script{}}}}
	if err := d.Run(t.Context()); !errors.Is(err, holdfast.ErrInvalid) || !strings.Contains(err.Error(), "OnParked") {
		t.Errorf("route: got %v, want ErrInvalid and the way out", err)
	}
}

// F1-40: a second dispatcher of the store that has no callbacks leaves those of the
// first as they are, whatever it delivers and whichever stops first.
func TestCallbacksOutliveASecondDispatcher(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		c := &told{}
		first := refusing(db)
		first.OnParked = c.call
		stopFirst := dispatch(t, first)
		synctest.Wait()
		second := &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"b": {Deliverer: &script{answer: always(errPermanent)}}}}
		stopSecond := dispatch(t, second)
		synctest.Wait()
		enqueue(t, db, holdfast.Message{ID: "one", Destination: "a"})
		synctest.Wait()
		enqueue(t, db, holdfast.Message{ID: "two", Destination: "b"})
		synctest.Wait()
		wantTold(t, c, "one", "two")
		if hasEndedLane(second) {
			t.Error("the second dispatcher takes notices")
		}
		stopped(t, stopFirst)
		enqueue(t, db, holdfast.Message{ID: "three", Destination: "b"})
		time.Sleep(time.Minute)
		wantTold(t, c, "one", "two")
		stopFirst = dispatch(t, first)
		synctest.Wait()
		wantTold(t, c, "one", "two", "three")
		stopped(t, stopSecond)
		stopped(t, stopFirst)
	})
}

// F1-40: a dispatcher that is Beside leaves notices of before to the one that has the
// callbacks, also where it runs first.
func TestADispatcherBesideLeavesNoticesAlone(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		c := &told{answer: func(n int) error {
			if n == 1 {
				return errors.New("not now")
			}
			return nil
		}}
		d := refusing(db)
		d.OnParked = c.call
		stop := dispatch(t, d)
		enqueue(t, db, holdfast.Message{ID: "m", Destination: "a"})
		synctest.Wait()
		stopped(t, stop)
		beside := &holdfast.Dispatcher{Store: db, Beside: true, Routes: map[string]holdfast.Route{"b": {Deliverer: &script{}}}}
		stopBeside := dispatch(t, beside)
		time.Sleep(time.Minute)
		wantTold(t, c, "m")
		stop = dispatch(t, d)
		synctest.Wait()
		wantTold(t, c, "m", "m")
		stopped(t, stopBeside)
		stopped(t, stop)
	})
}

// F1-40: of two dispatchers that have different callbacks the second says so, and the
// first one's stay.
func TestDispatchersThatDisagreeAboutCallbacks(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		c := &told{}
		first, second := refusing(db), refusing(db)
		first.OnParked, second.OnExpired = c.call, c.call
		stop := dispatch(t, first)
		synctest.Wait()
		if err := second.Run(t.Context()); !errors.Is(err, holdfast.ErrState) || !strings.Contains(err.Error(), "OnParked") {
			t.Errorf("got %v, want that the callbacks differ", err)
		}
		enqueue(t, db, holdfast.Message{ID: "m", Destination: "a"})
		synctest.Wait()
		wantTold(t, c, "m")
		stopped(t, stop)
		stop = dispatch(t, second) // alone it may
		synctest.Wait()
		stopped(t, stop)
	})
}
