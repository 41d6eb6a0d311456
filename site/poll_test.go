package site_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/site"
)

// looks counts how often somebody looks for due messages.
type looks struct {
	site.Store
	n atomic.Int64
}

func (l *looks) Claim(ctx context.Context, slots map[string]int) (holdfast.Batch, error) {
	l.n.Add(1)
	return l.Store.Claim(ctx, slots)
}

// SF-06, SF-32: how often it looks for what is due is a setting.
func TestTheIntervalOfLooksForDueMessagesIsASetting(t *testing.T) {
	t.Parallel()
	for poll, want := range map[time.Duration]int64{0: 600, 5 * time.Second: 120, 10 * time.Second: 60} {
		racetest.Bubble(t, func(t *testing.T) {
			var store *looks
			p := run(t, t.TempDir(), func(c *site.Config) {
				store = &looks{Store: c.Store}
				c.Store, c.Poll = store, poll
				c.Destinations = map[string]site.Destination{"erp": {
					Category: holdfast.CategoryExternalSystem,
					Route: holdfast.Route{Deliverer: holdfast.DelivererFunc(func(context.Context, holdfast.Message) (holdfast.Receipt, error) {
						return holdfast.Receipt{}, nil
					})},
				}}
			})
			defer p.stop()
			time.Sleep(10 * time.Minute)
			if n := store.n.Load(); n < want-2 || n > want+2 {
				t.Errorf("with a poll of %s it looked %d times in 10 minutes, want %d", poll, n, want)
			}
		})
	}
}
