package site_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/site"
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
		p.wantStatus(t, "late", site.Expired)
		p.wantStatus(t, "arrives", site.Delivered)
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
		p.wantStatus(t, "busy", site.Parked)
		if len(parked) != 1 || parked[0].ID != "busy" || parked[0].State != holdfast.Parked {
			t.Errorf("OnParked was told of %+v, want busy", parked)
		}
	})
}
