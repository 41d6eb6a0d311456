package site_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/site"
	"github.com/holdfast-mq/holdfast/track"
)

// SF-10: a stop lets what is in hand end for the grace, cuts off what takes
// longer, and keeps no caller waiting; what was cut off is tried by the next start.
func TestAStopKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		folder := t.TempDir()
		slow := func(c *site.Config) {
			c.Grace = 5 * time.Second
			c.Destinations = map[string]site.Destination{"erp": {
				Category: holdfast.CategoryExternalSystem,
				Route: holdfast.Route{Timeout: time.Hour, Deliverer: holdfast.DelivererFunc(func(ctx context.Context, m holdfast.Message) (holdfast.Receipt, error) {
					took := time.Hour
					if m.ID == "soon" {
						took = 3 * time.Second
					}
					select {
					case <-time.After(took):
						return holdfast.Receipt{ID: m.ID}, nil
					case <-ctx.Done():
						return holdfast.Receipt{}, context.Cause(ctx)
					}
				})},
			}}
		}
		p := run(t, folder, slow)
		type end struct {
			a    site.Answer
			err  error
			took time.Duration
		}
		ended := map[holdfast.ID]chan end{"soon": make(chan end, 1), "late": make(chan end, 1)}
		for id, c := range ended {
			go func() {
				began := time.Now()
				a, err := p.CachedCall(t.Context(), site.Call{ID: id, Destination: "erp", Endpoint: "Book", Wait: 30 * time.Minute})
				c <- end{a, err, time.Since(began)}
			}()
		}
		time.Sleep(time.Second)
		p.stop()
		if e := <-ended["soon"]; e.err != nil || e.a.State != holdfast.Delivered || e.took != 3*time.Second {
			t.Errorf("what ends within the grace: got %+v", e)
		}
		if e := <-ended["late"]; e.err != nil || !e.a.Buffered || e.took > 10*time.Second {
			t.Errorf("what does not: got %+v", e)
		}
		to := &target{}
		p = run(t, folder, erp(to))
		defer p.stop()
		time.Sleep(time.Minute)
		if p.wantStatus(t, "late", track.Delivered); to.count() != 1 {
			t.Errorf("the next start made %d calls, want 1", to.count())
		}
	})
}

// Whoever calls after a stop is not kept waiting either: the row is on disk.
func TestACallAfterAStop(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		p := open(t, t.TempDir(), erp(&target{}))
		defer p.stop()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		time.Sleep(time.Second)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		began := time.Now()
		if a := p.call(t, site.Call{}); !a.Buffered || time.Since(began) != 0 {
			t.Errorf("got %+v after %s", a, time.Since(began))
		}
	})
}

// A stop before the start is a stop, and no failure of the store.
func TestAStopBeforeTheStart(t *testing.T) {
	t.Parallel()
	p := open(t, t.TempDir(), erp(&target{}))
	defer p.stop()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Run(ctx); err != nil {
		t.Errorf("got %v", err)
	}
}
