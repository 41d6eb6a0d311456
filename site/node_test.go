package site_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/site"
	"github.com/holdfast-mq/holdfast/sqlite"
	"github.com/holdfast-mq/holdfast/track"
)

// Issue 13, 4: a site without a central forwards nothing, and may call somebody of its name.
func TestASiteThatIsAloneForwardsNothing(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		ctx, to := t.Context(), &target{}
		p := run(t, t.TempDir(), func(c *site.Config) {
			c.Alone = true
			c.Destinations = map[string]site.Destination{notify.Central: {Category: holdfast.CategoryExternalSystem, Route: holdfast.Route{Deliverer: to}}}
		})
		defer p.stop()
		if a, err := p.CachedCall(ctx, site.Call{ID: "call", Destination: notify.Central, Endpoint: "Book"}); err != nil || a.State != holdfast.Delivered {
			t.Errorf("a call: %+v, %v", a, err)
		}
		if o := p.wantStatus(t, "call", track.Delivered); o.Category != holdfast.CategoryExternalSystem {
			t.Errorf("it is of category %q", o.Category)
		}
		if _, err := p.Notify("operators").Send(ctx, "Tank 4 is full", ""); !errors.Is(err, holdfast.ErrState) || p.Forwarder() != nil {
			t.Errorf("a notification: %v", err)
		}
		if _, err := p.NotificationStatus(ctx, "call"); !errors.Is(err, holdfast.ErrState) {
			t.Errorf("how one stands: %v", err)
		}
		if _, err := site.New(site.Config{Store: p.db, Alone: true, Central: holdfast.Route{Deliverer: to}}); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("alone, with a central: %v", err)
		}
	})
}

// noted is a store that notes what a site does with it.
type noted struct {
	*sqlite.DB
	lanes map[string]holdfast.LaneSettings
	swept map[time.Duration]bool
}

func (n *noted) ConfigureLane(_ context.Context, destination string, s holdfast.LaneSettings) error {
	n.lanes[destination] = s
	return nil
}

func (n *noted) SweepInbox(_ context.Context, retention time.Duration) (int, bool, error) {
	n.swept[retention] = true
	return 0, false, nil
}

// Issue 13, 4: what a node has of a site, a program's site has too: an alarm does not wait
// behind what an outage of central has left, an inbox is swept, and the watch of the
// store may be one that others ask, too.
func TestASiteIsWhatANodeIsMadeOf(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		var (
			n       *noted
			watch   *holdfast.Progress
			waiters holdfast.Waiters
		)
		p := open(t, t.TempDir(), func(c *site.Config) {
			n = &noted{DB: c.Store.(*sqlite.DB), lanes: map[string]holdfast.LaneSettings{}, swept: map[time.Duration]bool{}}
			watch = &holdfast.Progress{Store: n, Lanes: func() []holdfast.LaneStatus { return nil }, Known: func(name string) bool { return name == "elsewhere" }}
			c.Store, c.Inbox, c.InboxRetention = n, n, 3*time.Hour
			c.Central, c.Progress, c.Waiters = holdfast.Route{Deliverer: &target{}}, watch, &waiters
		})
		defer p.stop()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		go func() { ended <- p.Run(ctx) }()
		go func() { ended <- watch.Run(ctx) }()
		for _, to := range []string{"elsewhere", "nowhere"} {
			if _, err := p.db.Enqueue(ctx, holdfast.Message{Destination: to, Endpoint: "Book"}); err != nil {
				t.Fatal(err)
			}
		}
		sub := &holdfast.Submitter{Enqueuer: n, Outbox: n, Waiters: &waiters, Lane: p.Dispatcher().Lane}
		got, err := sub.Submit(ctx, holdfast.Message{ID: "asked", Destination: notify.Central, Endpoint: notify.Endpoint}, time.Minute)
		if err != nil || got.Attempt == nil {
			t.Errorf("who waits besides was told %+v, %v", got, err)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		cancel()
		if err := errors.Join(<-ended, <-ended); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(map[string]holdfast.LaneSettings{notify.Central: {LiveFirst: true}}, n.lanes); diff != "" {
			t.Errorf("lanes (-want +got):\n%s", diff)
		}
		if !n.swept[3*time.Hour] {
			t.Errorf("the inbox was swept for %v, want 3 h", n.swept)
		}
		if diff := cmp.Diff([]string{"nowhere"}, p.Unserved()); diff != "" {
			t.Errorf("unserved (-want +got):\n%s", diff)
		}
	})
}
