package holdfast_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/sqlite"
)

func sweep(tb testing.TB, db *sqlite.DB, s *holdfast.Sweeper) (stop func()) {
	tb.Helper()
	s.Outbox, s.Inbox = db, db
	ctx, cancel := context.WithCancel(tb.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			tb.Error(err)
		}
	}
}

// OI-06: past its TTL a message expires, also in a lane that is down and also
// when it is parked; within it, it is delivered.
func TestMessagesExpireWhereNothingClaimsThem(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		defer sweep(t, db, &holdfast.Sweeper{})()
		to := &script{answer: always(errUnreachable)}
		bad := &script{answer: always(errPermanent)}
		ms := numbered(12, "down")
		for i := range ms {
			ms[i].TTL = time.Hour
		}
		ids := enqueue(t, db, ms...)
		parked := enqueue(t, db, holdfast.Message{Destination: "bad", TTL: 2 * time.Hour})[0]
		stop := dispatch(t, &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"down": {Deliverer: to}, "bad": {Deliverer: bad}}})
		time.Sleep(59 * time.Minute)
		for _, id := range ids {
			wantState(t, db, id, holdfast.Pending)
		}
		wantState(t, db, parked, holdfast.Parked)
		time.Sleep(2 * time.Minute)
		for _, id := range ids {
			wantState(t, db, id, holdfast.Expired)
		}
		wantState(t, db, parked, holdfast.Parked)
		time.Sleep(time.Hour)
		wantState(t, db, parked, holdfast.Expired)
		if c := db.Counts(); c.Pending != 0 || c.Parked != 0 || c.Expired != 13 {
			t.Errorf("counts %+v", c)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// OI-10, outbox case 36: final rows go after their retention, a year-old
// parked message stays.
func TestFinalRowsArePurgedAndParkedOnesStay(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "more than a week in virtual time")
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		week := 7 * 24 * time.Hour
		keep := holdfast.Retention{Delivered: week, Discarded: week, Expired: week}
		end := sweep(t, db, &holdfast.Sweeper{Every: 6 * time.Hour, Retention: keep})
		stop := dispatch(t, &holdfast.Dispatcher{Store: db, Poll: time.Hour, Routes: map[string]holdfast.Route{
			"good": {Deliverer: &script{}}, "bad": {Deliverer: &script{answer: always(errPermanent)}},
		}})
		delivered := enqueue(t, db, numbered(5, "good")...)
		parked := enqueue(t, db, numbered(2, "bad")...)
		time.Sleep(time.Minute)
		if _, err := db.Discard(t.Context(), parked[0], "tester"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * 24 * time.Hour)
		for _, id := range delivered {
			wantState(t, db, id, holdfast.Delivered)
		}
		time.Sleep(2 * 24 * time.Hour)
		for _, id := range append(delivered, parked[0]) {
			if r, err := db.Get(t.Context(), id); err == nil {
				t.Errorf("message %s is still there, %s", id, r.State)
			}
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		end()
		time.Sleep(365 * 24 * time.Hour)
		defer sweep(t, db, &holdfast.Sweeper{Every: time.Hour, Retention: keep})()
		time.Sleep(2 * time.Hour)
		wantState(t, db, parked[1], holdfast.Parked)
	})
}

// upkeep notes what a sweeper asks of a store, and when.
type upkeep struct {
	began   time.Time
	purges  []time.Duration
	keep    holdfast.Retention
	inbox   time.Duration
	expires int
}

func (u *upkeep) Expire(context.Context) (int, bool, error) { u.expires++; return 0, false, nil }

func (u *upkeep) Purge(_ context.Context, keep holdfast.Retention) (int, bool, error) {
	u.purges, u.keep = append(u.purges, time.Since(u.began)), keep
	return 0, false, nil
}

// forgetful is an inbox that notes for how long ids are kept.
type forgetful struct {
	holdfast.InboxLog
	*upkeep
}

func (f *forgetful) SweepInbox(_ context.Context, keep time.Duration) (int, bool, error) {
	f.inbox = keep
	return 0, false, nil
}

// OI-10: a Sweeper that says nothing purges every five minutes, keeps messages
// for ever and ids of the inbox for seven days (F1-99).
func TestDefaultsOfTheSweeper(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		u := &upkeep{began: time.Now()}
		ctx, cancel := context.WithTimeout(t.Context(), 16*time.Minute+time.Second)
		defer cancel()
		if err := (&holdfast.Sweeper{Outbox: u, Inbox: &forgetful{upkeep: u}}).Run(ctx); err != nil {
			t.Fatal(err)
		}
		m := time.Minute
		if diff := cmp.Diff(u.purges, []time.Duration{5 * m, 10 * m, 15 * m}); diff != "" {
			t.Errorf("purges (-got +want):\n%s", diff)
		}
		if diff := cmp.Diff(u.keep, holdfast.Retention{}); diff != "" {
			t.Errorf("retention (-got +want):\n%s", diff)
		}
		if week := 7 * 24 * time.Hour; u.inbox != week || u.expires != 96 {
			t.Errorf("ids are kept for %s, %d looks for what expires; want %s and one each ten seconds", u.inbox, u.expires, week)
		}
	})
}

// expiring is a store with two pages of messages whose time is over, once.
type expiring struct {
	upkeep
	pages []int
}

func (e *expiring) Expire(context.Context) (n int, more bool, err error) {
	if len(e.pages) > 0 {
		n, e.pages = e.pages[0], e.pages[1:]
	}
	return n, len(e.pages) > 0, nil
}

// counted adds up what an observer is told of.
type counted struct {
	holdfast.Observer
	told []int
}

func (c *counted) ObserveExpired(n int) { c.told = append(c.told, n) }

// F1-99: each page of what expires is counted, and nothing is no page.
func TestWhatExpiresIsCounted(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		var c counted
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := (&holdfast.Sweeper{Outbox: &expiring{pages: []int{7, 2}}, Observer: &c}).Run(ctx); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.told, []int{7, 2}); diff != "" {
			t.Errorf("(-got +want):\n%s", diff)
		}
	})
}

// OI-10: an id is remembered for the retention, and for as long as its
// sender said that it may retry.
func TestTheInboxForgetsWhenItMay(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "more than a week in virtual time")
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		week := 7 * 24 * time.Hour
		defer sweep(t, db, &holdfast.Sweeper{Every: 6 * time.Hour, InboxRetention: week})()
		e := &holdfast.Endpoints{Log: db, Retention: week, Map: map[string]holdfast.Endpoint{"Book": {Forward: &program{}}}}
		take := func(id string, a holdfast.Attempt) (holdfast.Receipt, error) {
			m := arriving(id, "Book")
			m.Attempt = a
			return e.Receive(t.Context(), m)
		}
		short := holdfast.Attempt{Number: 1, Cycle: 1, RetryFor: 24 * time.Hour}
		long := holdfast.Attempt{Number: 1, Cycle: 1, RetryFor: 30 * 24 * time.Hour}
		for _, m := range []struct {
			id string
			a  holdfast.Attempt
		}{{"short", short}, {"long", long}} { // the newest id is never purged
			if _, err := take(m.id, m.a); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(8 * 24 * time.Hour)
		late := func(a holdfast.Attempt) holdfast.Attempt {
			a.Number, a.FirstAgo = 9, 8*24*time.Hour
			return a
		}
		if r, err := take("long", late(long)); err != nil || !r.Duplicate {
			t.Errorf("within its sender's time: got %+v, %v; want a duplicate", r, err)
		}
		if r, err := take("short", late(short)); err != nil || r.Duplicate {
			t.Errorf("an honest sender had its end before: got %+v, %v", r, err)
		}
		// One that comes in a later cycle may have been forgotten.
		again := holdfast.Attempt{Number: 1, Cycle: 2, RetryFor: time.Hour, FirstAgo: 8 * 24 * time.Hour}
		_, err := take("unknown", again)
		if f := holdfast.AsFailure(err); f.Reason != holdfast.ReasonTooOld {
			t.Errorf("got %v, want too old", err)
		}
		again.Forced = true
		if _, err := take("unknown", again); err != nil {
			t.Errorf("forced by an operator: %v", err)
		}
	})
}

// A backlog that found nobody for weeks is no risk for the receiver's memory:
// nothing of it was ever handed over, so it is taken when the line is back.
func TestABacklogThatFoundNobodyIsNotTooOld(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "weeks of tries")
	racetest.Bubble(t, func(t *testing.T) {
		out, in := openStore(t), openStore(t)
		defer closeStore(t, out)
		defer closeStore(t, in)
		e := &holdfast.Endpoints{Log: in, Map: map[string]holdfast.Endpoint{"E": {Keep: true}}}
		to := &script{answer: always(errUnreachable)}
		ids := enqueue(t, out, numbered(3, "a")...)
		routes := map[string]holdfast.Route{"a": {Deliverer: to}}
		stop := dispatch(t, &holdfast.Dispatcher{Store: out, Routes: routes, Poll: time.Hour})
		time.Sleep(20 * 24 * time.Hour)
		to.become(func(ctx context.Context, m holdfast.Message) error {
			_, err := e.Receive(ctx, m)
			return err
		})
		time.Sleep(time.Hour)
		for _, id := range ids {
			wantState(t, out, id, holdfast.Delivered)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
