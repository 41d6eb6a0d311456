package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// OI-05: 2, 4, 8, 16, 32 s, five retries, then parked.
func TestParkedWhenBudgetIsSpent(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		to := &script{answer: always(errTransient)}
		id := enqueue(t, db, holdfast.Message{Destination: "inventory"})[0]
		stop := dispatch(t, &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{
			"inventory": {Deliverer: to, Retry: holdfast.RetryPolicy{Jitter: -1}},
		}})
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		want := []time.Duration{0, 2, 6, 14, 30, 62}
		for i := range want {
			want[i] *= time.Second
		}
		got := to.since()
		for i := range got {
			got[i] = got[i].Round(10 * time.Millisecond)
		}
		if d := cmp.Diff(got, want); d != "" {
			t.Errorf("attempts (-got +want):\n%s", d)
		}
		r := wantState(t, db, id, holdfast.Parked)
		if r.Reason != holdfast.ReasonExhausted || r.Failures != 6 || r.LastError != "busy" {
			t.Errorf("got reason %q, %d failures, last error %q", r.Reason, r.Failures, r.LastError)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// SF-03, OI-02: a permanent failure parks at once.
func TestPermanentFailureParksAtOnce(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		to := &script{answer: func(_ context.Context, m holdfast.Message) error {
			return fmt.Errorf("deliver message %s: %w", m.ID, errPermanent)
		}}
		id := enqueue(t, db, holdfast.Message{Destination: "a"})[0]
		stop := dispatch(t, &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {Deliverer: to}}})
		time.Sleep(time.Hour)
		r := wantState(t, db, id, holdfast.Parked)
		if to.count() != 1 || r.Reason != holdfast.ReasonPermanent || r.LastError != "refused" {
			t.Errorf("%d attempts, reason %q, last error %q; want 1, permanent, refused", to.count(), r.Reason, r.LastError)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// SF-07: an attempt that found nobody is not charged; edge case 48: a
// ten-minute outage parks nothing, and a day's outage is not hammered.
func TestAnOutageParksNothing(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "a day in virtual time")
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		to := &script{answer: always(errUnreachable)}
		ids := enqueue(t, db, numbered(40, "a")...)
		stop := dispatch(t, &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {Deliverer: to}}})
		time.Sleep(24 * time.Hour)
		if n := to.count(); n > 400 {
			t.Errorf("%d attempts in a day of outage; want one per backoff of the lane", n)
		}
		to.become(nil)
		time.Sleep(6 * time.Minute)
		for _, id := range ids {
			wantState(t, db, id, holdfast.Delivered)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// The same for an outage in which somebody answers 503: only the messages
// that probe are charged.
func TestAShort503OutageParksNothing(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		to := &script{answer: always(errTransient)}
		ids := enqueue(t, db, numbered(40, "a")...)
		stop := dispatch(t, &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {Deliverer: to}}})
		time.Sleep(10 * time.Minute)
		to.become(nil)
		time.Sleep(10 * time.Minute)
		for _, id := range ids {
			wantState(t, db, id, holdfast.Delivered)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// charge: every_attempt restores the source's rule.
func TestEveryAttemptIsChargedWhereTheRouteSaysSo(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		to := &script{answer: always(errUnreachable)}
		id := enqueue(t, db, holdfast.Message{Destination: "a"})[0]
		stop := dispatch(t, &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {Deliverer: to, ChargeAll: true}}})
		time.Sleep(5 * time.Minute)
		r := wantState(t, db, id, holdfast.Parked)
		if r.Failures != 6 || to.count() != 6 {
			t.Errorf("%d failures, %d attempts; want 6", r.Failures, to.count())
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A lane fault (credentials refused) charges nobody, holds the lane over a
// restart, and ends when the fault does.
func TestALaneFaultHoldsTheLaneAndChargesNobody(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		to := &script{answer: always(errLaneFault)}
		ids := enqueue(t, db, numbered(20, "a")...)
		d := &holdfast.Dispatcher{Store: db, Lanes: db, Routes: map[string]holdfast.Route{"a": {Deliverer: to}}}
		stop := dispatch(t, d)
		time.Sleep(time.Hour)
		if s := d.Status()[0]; !s.Held || s.Up || s.Problem != "credentials refused" {
			t.Errorf("lane status %+v, want held with its problem", s)
		}
		faults, err := db.LaneFaults(t.Context())
		if err != nil || len(faults) != 1 || faults[0].Problem != "credentials refused" {
			t.Errorf("kept faults %+v, %v", faults, err)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		d = &holdfast.Dispatcher{Store: db, Lanes: db, Routes: map[string]holdfast.Route{"a": {Deliverer: to}}}
		stop = dispatch(t, d)
		synctest.Wait()
		if s := d.Status()[0]; !s.Held {
			t.Errorf("after a restart the lane is %+v, want held", s)
		}
		for _, id := range ids {
			if r := wantState(t, db, id, holdfast.Pending); r.Failures != 0 {
				t.Errorf("message %s was charged %d times", id, r.Failures)
			}
		}
		to.become(nil)
		time.Sleep(10 * time.Minute)
		for _, id := range ids {
			wantState(t, db, id, holdfast.Delivered)
		}
		if faults, err := db.LaneFaults(t.Context()); err != nil || len(faults) != 0 {
			t.Errorf("kept faults %+v, %v; want none", faults, err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// Edge case 45 in small: a destination that accepts and never answers costs
// its neighbour nothing.
func TestADestinationThatNeverAnswersDelaysNoOther(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		hole := &script{answer: func(ctx context.Context, _ holdfast.Message) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		good := &script{}
		enqueue(t, db, numbered(50, "hole")...)
		stop := dispatch(t, &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"hole": {Deliverer: hole}, "good": {Deliverer: good}}})
		time.Sleep(3 * time.Hour)
		before := time.Now()
		id := enqueue(t, db, holdfast.Message{Destination: "good"})[0]
		synctest.Wait()
		wantState(t, db, id, holdfast.Delivered)
		if took := time.Since(before); took > 0 {
			t.Errorf("the neighbour waited %s", took)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// Design 6: concurrency starts low, grows with success and is bounded.
func TestALaneStartsSlowAndIsBounded(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		var most, now atomic.Int64
		to := &script{answer: func(context.Context, holdfast.Message) error {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(time.Second)
			now.Add(-1)
			return nil
		}}
		enqueue(t, db, numbered(150, "a")...)
		stop := dispatch(t, &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {Deliverer: to, Limit: 12}}})
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		if n := now.Load(); n != 5 {
			t.Errorf("%d attempts at once at the start, want 5", n)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if n := most.Load(); n != 12 {
			t.Errorf("%d attempts at once at most, want 12", n)
		}
		if got := db.Counts().Pending; got != 0 {
			t.Errorf("%d messages wait still", got)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// SF-10: a stop lets work in hand end.
//
// Outbox case 29.
func TestStopWaitsForWorkInHand(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		to := &script{answer: func(context.Context, holdfast.Message) error {
			time.Sleep(8 * time.Second)
			return nil
		}}
		ids := enqueue(t, db, numbered(9, "a")...)
		stop := dispatch(t, &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {Deliverer: to}}})
		time.Sleep(time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		delivered := 0
		for _, id := range ids {
			if r := record(t, db, id); r.State == holdfast.Delivered {
				delivered++
			} else if r.State != holdfast.Pending || r.Tries != 0 {
				t.Errorf("message %s is %s after %d tries, want untouched", id, r.State, r.Tries)
			}
		}
		if delivered != 5 || to.count() != 5 {
			t.Errorf("%d delivered, %d begun; want the 5 in hand", delivered, to.count())
		}
	})
}

// NO-09, NO-12: what the stop cuts off has no outcome and is not charged.
func TestStopCutsOffAfterTheGrace(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		to := &script{answer: func(ctx context.Context, _ holdfast.Message) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		id := enqueue(t, db, holdfast.Message{Destination: "a"})[0]
		stop := dispatch(t, &holdfast.Dispatcher{Store: db, Grace: 3 * time.Second, Routes: map[string]holdfast.Route{"a": {Deliverer: to, Timeout: time.Hour}}})
		time.Sleep(time.Second)
		began := time.Now()
		if err := stop(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("stop took %s, want the grace of 3s", took)
		}
		r := wantState(t, db, id, holdfast.Pending)
		if r.Failures != 0 || !r.History[len(r.History)-1].Maybe {
			t.Errorf("%d failures, history %+v; want uncharged and maybe delivered", r.Failures, r.History)
		}
	})
}

// Outbox case 8: a deliverer that ignores its context cannot hold up a stop,
// and the error names the message.
func TestStopReturnsByTheDeadlineAndNamesWhatHangs(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		release := make(chan struct{})
		to := &script{answer: func(context.Context, holdfast.Message) error {
			<-release
			return nil
		}}
		enqueue(t, db, holdfast.Message{ID: "stubborn", Destination: "a"})
		stop := dispatch(t, &holdfast.Dispatcher{Store: db, Grace: 10 * time.Second, Routes: map[string]holdfast.Route{"a": {Deliverer: to}}})
		time.Sleep(time.Second)
		began := time.Now()
		err := stop()
		if took := time.Since(began); took > 13*time.Second {
			t.Errorf("stop took %s", took)
		}
		if err == nil || !strings.Contains(err.Error(), "stubborn") {
			t.Errorf("got error %v, want one that names the message", err)
		}
		close(release)
		synctest.Wait()
		closeStore(t, db)
	})
}

// A deliverer that ignores its time-out loses its claim, not the lane's
// other messages; its late result changes nothing.
func TestAHungAttemptIsGivenUp(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		release := make(chan struct{})
		var seen atomic.Bool
		to := &script{}
		to.become(func(_ context.Context, m holdfast.Message) error {
			if m.ID == "hung" && !seen.Swap(true) {
				<-release
				return errPermanent
			}
			return nil
		})
		enqueue(t, db, holdfast.Message{ID: "hung", Destination: "a"})
		stop := dispatch(t, &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {Deliverer: to, Timeout: time.Second}}})
		time.Sleep(time.Minute)
		synctest.Wait()
		wantState(t, db, "hung", holdfast.Delivered)
		close(release)
		time.Sleep(time.Minute)
		wantState(t, db, "hung", holdfast.Delivered)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// Design 5: a panic in a deliverer is a transient failure.
func TestAPanicOfADelivererIsATransientFailure(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		var n atomic.Int64
		to := &script{answer: func(context.Context, holdfast.Message) error {
			if n.Add(1) == 1 {
				panic("boom")
			}
			return nil
		}}
		id := enqueue(t, db, holdfast.Message{Destination: "a"})[0]
		stop := dispatch(t, &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {Deliverer: to}}})
		time.Sleep(time.Minute)
		r := wantState(t, db, id, holdfast.Delivered)
		if r.Failures != 1 || r.Tries != 2 {
			t.Errorf("%d failures in %d tries, want 1 in 2", r.Failures, r.Tries)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// Retry-After is a minimum.
func TestRetryAfterIsAMinimum(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		to := &script{answer: always(&holdfast.Failure{RetryAfter: 90 * time.Second, Err: errors.New("later")})}
		enqueue(t, db, holdfast.Message{Destination: "a"})
		stop := dispatch(t, &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {Deliverer: to}}})
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got := to.since(); len(got) != 2 || got[1] < 90*time.Second || got[1] > 91*time.Second {
			t.Errorf("attempts at %v, want the second after 90s", got)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// Outbox case 37: a backlog found at start flows at once.
func TestABacklogFlowsAfterARestart(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		path := t.TempDir() + "/holdfast.db"
		db := openStoreAt(t, path)
		ids := enqueue(t, db, numbered(100, "a")...)
		closeStore(t, db)
		db = openStoreAt(t, path)
		defer closeStore(t, db)
		to := &script{}
		stop := dispatch(t, &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {Deliverer: to}}})
		time.Sleep(time.Second)
		synctest.Wait()
		for _, id := range ids {
			wantState(t, db, id, holdfast.Delivered)
		}
		if to.count() != 100 {
			t.Errorf("%d attempts for 100 messages", to.count())
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// Outbox case 22 and design 6: of an ordering key one message is in flight,
// in order, and only that key waits for one that fails.
func TestAnOrderingKeyKeepsItsOrder(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		to := &script{}
		to.become(func(_ context.Context, m holdfast.Message) error {
			time.Sleep(10 * time.Millisecond)
			if m.ID == "x-0" && m.Attempt.Number < 3 {
				return errTransient
			}
			return nil
		})
		var ms []holdfast.Message
		for _, key := range []string{"x", "y"} {
			for i := range 5 {
				ms = append(ms, holdfast.Message{ID: holdfast.ID(key + "-" + string(rune('0'+i))), Destination: "a", OrderingKey: key})
			}
		}
		enqueue(t, db, ms...)
		stop := dispatch(t, &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {Deliverer: to}}})
		time.Sleep(time.Second)
		synctest.Wait()
		var x, y []string
		for _, a := range to.tries() {
			if strings.HasPrefix(string(a.id), "y") {
				y = append(y, string(a.id))
			}
		}
		if d := cmp.Diff(y, []string{"y-0", "y-1", "y-2", "y-3", "y-4"}); d != "" {
			t.Errorf("the other key (-got +want):\n%s", d)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, a := range to.tries() {
			if strings.HasPrefix(string(a.id), "x") {
				x = append(x, string(a.id))
			}
		}
		if d := cmp.Diff(x, []string{"x-0", "x-0", "x-0", "x-1", "x-2", "x-3", "x-4"}); d != "" {
			t.Errorf("the key that failed (-got +want):\n%s", d)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// OI-06: a message whose time ends while it waits for a slot, claimed already,
// is not sent; it expires (F1-99).
func TestWhatExpiresInTheReadyQueueIsNotSent(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		to := &script{answer: func(context.Context, holdfast.Message) error {
			time.Sleep(2 * time.Minute)
			return nil
		}}
		enqueue(t, db, holdfast.Message{ID: "slow", Destination: "a"}, holdfast.Message{ID: "late", Destination: "a", TTL: time.Minute}, holdfast.Message{ID: "last", Destination: "a", TTL: 5 * time.Minute})
		stop := dispatch(t, &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {Deliverer: to, Limit: 1, Timeout: 10 * time.Minute}}})
		time.Sleep(time.Second)
		wantState(t, db, "late", holdfast.Claimed) // else the claim would have found it expired
		time.Sleep(10 * time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		var sent []holdfast.ID
		for _, a := range to.tries() {
			sent = append(sent, a.id)
		}
		if !slices.Equal(sent, []holdfast.ID{"slow", "last"}) {
			t.Errorf("sent %v, want slow and last", sent)
		}
		wantState(t, db, "last", holdfast.Delivered)
		if r := wantState(t, db, "late", holdfast.Expired); r.Failures != 0 {
			t.Errorf("%d failures charged to what was never sent", r.Failures)
		}
	})
}
