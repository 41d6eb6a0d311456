package site_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/site"
	"github.com/holdfast-mq/holdfast/track"
)

// F1-96: what nobody delivers expires, and what has ended does not stay for ever,
// though the program runs nothing but its Site.
func TestASiteExpiresAndPurges(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		ctx := t.Context()
		var expired []holdfast.ID
		p := run(t, t.TempDir(), func(c *site.Config) {
			erp(&target{})(c)
			c.Poll, c.Sweep, c.Retention = 10*time.Second, time.Minute, &holdfast.Retention{Delivered: time.Hour, Expired: time.Hour}
			c.Destinations["gone"] = site.Destination{Category: holdfast.CategoryExternalSystem}
			c.OnExpired = func(_ context.Context, e holdfast.Ended) error {
				expired = append(expired, e.ID)
				return nil
			}
		})
		defer p.stop()
		p.call(t, site.Call{ID: "arrives"})
		if _, err := p.CachedCall(ctx, site.Call{ID: "late", Destination: "gone", Endpoint: "Book", TTL: time.Minute}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		p.wantStatus(t, "late", track.Expired)
		p.wantStatus(t, "arrives", track.Delivered)
		if len(expired) != 1 || expired[0] != "late" {
			t.Errorf("OnExpired was told of %v, want [late]", expired)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		for _, id := range []holdfast.ID{"late", "arrives"} {
			if o, err := p.Status(ctx, id); !errors.Is(err, holdfast.ErrNotFound) {
				t.Errorf("got %+v, error %v of %s, want ErrNotFound", o, err, id)
			}
		}
	})
}

// F1-96: the program is told what parked; what is parked stays.
func TestASiteTellsWhatParked(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		var parked []holdfast.Ended
		p := run(t, t.TempDir(), func(c *site.Config) {
			to := &target{}
			to.become(says(errBusy))
			erp(to)(c)
			c.Poll, c.Sweep = 10*time.Second, time.Minute
			c.OnParked = func(_ context.Context, e holdfast.Ended) error {
				parked = append(parked, e)
				return nil
			}
		})
		defer p.stop()
		p.call(t, site.Call{ID: "busy", Retries: 1})
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		p.wantStatus(t, "busy", track.Parked)
		if len(parked) != 1 || parked[0].ID != "busy" || parked[0].State != holdfast.Parked {
			t.Errorf("OnParked was told of %+v, want busy", parked)
		}
	})
}

// toCentral takes notifications, and wants them kept.
type toCentral struct{ target }

func (c *toCentral) Held() map[string]time.Duration {
	return map[string]time.Duration{notify.Central: 3 * time.Hour}
}

// What was forwarded is kept for as long as the way to central says: a central that was
// restored from a backup is sent it again (SF-19).
func TestASiteKeepsWhatCentralMayLose(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		ctx := t.Context()
		p := run(t, t.TempDir(), func(c *site.Config) {
			c.Central = holdfast.Route{Deliverer: &toCentral{}}
			c.Poll, c.Sweep, c.Retention = time.Minute, 10*time.Minute, &holdfast.Retention{Delivered: time.Hour}
		})
		defer p.stop()
		for _, id := range []holdfast.ID{"kept", "newest"} { // the newest row always stays
			if _, err := p.Notify("operators").ID(id).Send(ctx, "Tank 4 is full", ""); err != nil {
				t.Fatal(err)
			}
		}
		for _, want := range []struct {
			after time.Duration
			kept  bool
		}{{2 * time.Hour, true}, {2 * time.Hour, false}} {
			time.Sleep(want.after)
			synctest.Wait()
			if r, err := p.db.Get(ctx, "kept"); (err == nil) != want.kept {
				t.Errorf("after %s more: %v, %v, want it kept: %t", want.after, r.State, err, want.kept)
			}
		}
	})
}
