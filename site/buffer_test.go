package site_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/site"
	"github.com/holdfast-mq/holdfast/track"
)

// SF-11: a destination without a deliverer is one warning, not one per row and
// pass; its rows stay pending, also while nobody would be asked.
func TestRowsWithoutADelivererStayPending(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		log, folder := &book{}, t.TempDir()
		p := run(t, folder, func(c *site.Config) {
			erp(nil)(c)
			c.Logger = log.logger()
		})
		for i := range 100 {
			began := time.Now()
			if a := p.call(t, site.Call{ID: holdfast.ID(fmt.Sprint("a", i))}); !a.Buffered || time.Since(began) != 0 {
				t.Errorf("got %+v after %s", a, time.Since(began))
			}
		}
		if _, err := p.Notify("operators").Send(t.Context(), "Tank 4 is full", ""); err != nil {
			t.Error(err)
		}
		time.Sleep(10*time.Minute + time.Second)
		if got := p.Unserved(); !cmp.Equal(got, []string{"central", "erp"}) {
			t.Errorf("unserved are %v", got)
		}
		if n := log.count(`cause=no_route destinations="central, erp" count=2`); n < 9 || n > 11 {
			t.Errorf("%d warnings in ten minutes, want one a minute", n)
		}
		if c := p.db.Counts(); c.Pending != 101 || c.Parked != 0 {
			t.Errorf("%d are pending and %d parked", c.Pending, c.Parked)
		}
		p.stop()

		to := &target{} // a later start has one
		p = run(t, folder, erp(to))
		defer p.stop()
		time.Sleep(time.Minute)
		if got := p.Unserved(); to.count() != 100 || !cmp.Equal(got, []string{"central"}) {
			t.Errorf("%d were delivered then, and unserved are %v", to.count(), got)
		}
	})
}

// SF-15: the depth counts what waits: up when it is buffered and requeued, down
// when it is delivered, parked or expired; a restart finds it again.
func TestTheDepthFollowsEveryChange(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		folder, to := t.TempDir(), &target{answer: says(errBusy)}
		p := run(t, folder, erp(to))
		depth := func(when string, pending, parked int64) {
			t.Helper()
			if c := p.db.Counts(); c.Pending != pending || c.Parked != parked || c.Lanes["erp"].Pending != pending {
				t.Errorf("%s: %d pending and %d parked, want %d and %d", when, c.Pending, c.Parked, pending, parked)
			}
		}
		depth("at first", 0, 0)
		p.call(t, site.Call{ID: "retried", Retries: holdfast.Unlimited})
		p.call(t, site.Call{ID: "parked", Retries: 1, Interval: time.Second})
		p.call(t, site.Call{ID: "expired", TTL: 2 * time.Hour, Retries: holdfast.Unlimited})
		depth("buffered", 3, 0)
		time.Sleep(5 * time.Second)
		depth("one is parked", 2, 1)
		if _, err := p.db.Requeue(t.Context(), "parked", holdfast.Requeue{Actor: "ann"}); err != nil {
			t.Fatal(err)
		}
		depth("it is requeued", 3, 0)
		time.Sleep(30 * time.Minute) // the destination is down, and probed
		depth("it is parked again", 2, 1)
		p.stop()

		p = run(t, folder, erp(to))
		defer p.stop()
		depth("after a restart", 2, 1)
		if _, err := p.db.Discard(t.Context(), "parked", "ann"); err != nil {
			t.Fatal(err)
		}
		depth("discarded", 2, 0)
		p.wantStatus(t, "parked", track.Discarded)
		time.Sleep(2 * time.Hour)
		depth("one is expired", 1, 0)
		p.wantStatus(t, "expired", track.Expired)
		to.become(nil)
		time.Sleep(10 * time.Minute)
		depth("delivered", 0, 0)
	})
}

// SF-12, SF-27: what happened to a call, and who decided about it, stands with it.
func TestTheHistoryOfACall(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		to := &target{answer: says(errBusy)}
		p := run(t, t.TempDir(), erp(to))
		defer p.stop()
		p.call(t, site.Call{ID: "a", Retries: 1, Interval: time.Second})
		time.Sleep(2 * time.Second)
		page, err := p.db.List(t.Context(), holdfast.Query{States: []holdfast.State{holdfast.Parked}})
		if err != nil || len(page.Records) != 1 || page.Records[0].Message.ID != "a" {
			t.Fatalf("parked are %+v, %v", page.Records, err)
		}
		if _, err := p.db.Requeue(t.Context(), "a", holdfast.Requeue{Actor: "ann"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if _, err := p.db.Discard(t.Context(), "a", "bob"); err != nil {
			t.Fatal(err)
		}
		r, err := p.db.Get(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range r.History {
			got = append(got, fmt.Sprintf("%s %s %s", e.Kind, e.State, e.Actor))
		}
		want := []string{
			"enqueued pending ", "attempted pending ", "attempted parked ", "requeued pending ann",
			"attempted pending ", "attempted parked ", "discarded discarded bob",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}
