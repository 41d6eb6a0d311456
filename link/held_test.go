package link_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// sweep runs a site's sweeper until the returned function is called.
func (p *plant) sweep(keep time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(p.w.t.Context())
	s := holdfast.Sweeper{Outbox: p.db, Retention: holdfast.Retention{Delivered: keep}, Every: time.Hour, Held: p.Held}
	var run sync.WaitGroup
	run.Go(func() { _ = s.Run(ctx) })
	return func() {
		cancel()
		run.Wait()
	}
}

// SF-12, NO-20, design 10: central is away for longer than the site keeps what
// was delivered, and comes back from a backup. It gets all of the day before it
// was lost.
func TestALongOutageIsReplayed(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "weeks of polls")
	for name, days := range map[string]int{"eight days": 8, "forty days": 40} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			within(t, func(w *world) {
				p := w.site("plant-7")
				p.run(true)
				defer func() { p.stop() }()
				stop := p.sweep(7 * 24 * time.Hour)
				defer func() { stop() }()
				p.put(0, 50)
				p.delivered(time.Minute)
				time.Sleep(22 * time.Hour)
				p.put(50, 100)
				p.delivered(time.Minute)
				time.Sleep(time.Hour)
				w.away()
				w.lose()
				time.Sleep(time.Duration(days) * 12 * time.Hour)
				stop() // the site's machine starts anew meanwhile
				p.stop()
				p.renew()
				p.run(true)
				stop = p.sweep(7 * 24 * time.Hour)
				time.Sleep(time.Duration(days) * 12 * time.Hour)
				w.start()
				w.eventually(5*time.Minute, "replayed", func() bool { return !p.Status().Replaying && len(w.kept()) >= 100 })
				if got := len(w.kept()); got != 100 {
					t.Errorf("central has %d messages, want the 100 of the last day", got)
				}
				time.Sleep(2 * time.Hour)
				if n := p.left(); n > 1 { // the highest row stays
					t.Errorf("%d delivered messages are kept though central has everything again", n)
				}
			})
		})
	}
}

// left counts the delivered messages that a site has.
func (p *plant) left() int {
	p.w.t.Helper()
	list, err := p.db.List(p.w.t.Context(), holdfast.Query{States: []holdfast.State{holdfast.Delivered}, Limit: 500})
	if err != nil {
		p.w.t.Fatal(err)
	}
	return len(list.Records)
}

// While central is heard, retention alone says what is kept.
func TestPurgingGoesOnWhileCentralIsHeard(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "a day of polls")
	within(t, func(w *world) {
		p := w.site("plant-7")
		p.run(true)
		defer p.stop()
		stop := p.sweep(24 * time.Hour)
		defer stop()
		p.put(0, 100)
		p.delivered(time.Minute)
		time.Sleep(24 * time.Hour)
		if n := p.left(); n != 100 {
			t.Errorf("%d delivered messages are kept after a day, want 100", n)
		}
		time.Sleep(4 * time.Hour)
		if n := p.left(); n > 1 { // the highest row stays
			t.Errorf("%d delivered messages are kept, though central was heard for long since", n)
		}
	})
}
