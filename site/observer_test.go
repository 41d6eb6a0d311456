package site_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/site"
	"github.com/holdfast-mq/holdfast/track"
)

// SF-24: an observer that is slow, fails or panics changes no delivery; what it misses is counted.
func TestAnObserverChangesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tell   func(n int) error
		missed int64
	}{
		"fails":     {func(int) error { return errors.New("no room") }, 2000},
		"panics":    {func(int) error { panic("observer") }, 2000},
		"is slow":   {func(int) error { time.Sleep(time.Hour); return nil }, 2000 - 1024 - 1},
		"is prompt": {func(int) error { return nil }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				n := 0
				p := run(t, t.TempDir(), func(conf *site.Config) {
					erp(&target{})(conf)
					conf.OnAttempt = func(context.Context, site.Attempt) error { n++; return c.tell(n) }
				})
				began := time.Now()
				for i := range 2000 {
					p.call(t, site.Call{ID: holdfast.ID(fmt.Sprint("m", i))})
				}
				if took := time.Since(began); took > time.Minute {
					t.Errorf("the calls took %s", took)
				}
				time.Sleep(time.Minute)
				p.wantStatus(t, "m1999", track.Delivered)
				if got := p.ObserverFailures(); got != c.missed {
					t.Errorf("%d attempts were missed, want %d", got, c.missed)
				}
				p.stop()
				time.Sleep(2 * time.Hour) // a slow one ends
			})
		})
	}
}
