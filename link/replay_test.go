package link_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/link"
)

// lose is what a restore does to a central that is away: another store, with
// the sites and none of the messages.
func (w *world) lose() {
	fresh := open(w.t, "central")
	w.inbox.BatchReceiver = &holdfast.Endpoints{Log: fresh, Other: &holdfast.Endpoint{Keep: true}}
	w.db = fresh
	w.store.restored(fmt.Sprint("restored ", time.Now().UnixNano()))
}

// NO-20, design 10: central was restored from a backup, and gets again what the
// site had forwarded, once.
func TestAReplayFillsWhatCentralLost(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		p := w.site("plant-7")
		p.run(true)
		defer p.stop()
		p.met()
		p.put(0, 1200)
		p.delivered(time.Minute)
		time.Sleep(2 * time.Hour)
		if s := p.Status(); s.Replayed != 0 {
			t.Errorf("replayed %d messages to a new central that has all", s.Replayed)
		}
		w.away()
		w.lose()
		w.start()
		w.eventually(5*time.Minute, "replayed", func() bool { return !p.Status().Replaying && len(w.kept()) == 1200 })
		p.put(1200, 1210)
		p.delivered(time.Minute)
		if got := len(w.kept()); got != 1210 {
			t.Errorf("central has %d messages, want 1210", got)
		}
		time.Sleep(time.Hour)
		if s := p.Status(); s.Replayed != 1200 {
			t.Errorf("replayed %d messages, want 1200, once", s.Replayed)
		}
		sites, err := w.central.Sites(t.Context())
		if err != nil || len(sites) != 1 || sites[0].Health().Replayed != 1200 {
			t.Errorf("got %+v, %v; want that the site tells", sites, err)
		}
	})
}

// The site was away when central was restored: the window counts from when it
// last heard of the old one. A restart in the middle begins again.
func TestAReplayBeginsAgainAfterARestart(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		p := w.site("plant-7")
		p.run(true)
		p.put(0, 1100)
		p.delivered(time.Minute)
		time.Sleep(2 * time.Minute)
		p.stop()
		w.away()
		w.lose()
		time.Sleep(5 * 24 * time.Hour)
		w.start()
		w.inbox.takes = 5 * time.Second
		for range 3 { // each ends in the middle
			p.renew()
			p.run(false)
			w.eventually(time.Minute, "replaying", func() bool { return p.Status().Replaying })
			time.Sleep(7 * time.Second)
			p.stop()
		}
		if n := len(w.kept()); n == 1100 {
			t.Fatal("the restarts came too late to test anything")
		}
		p.renew()
		p.run(false)
		defer p.stop()
		w.eventually(5*time.Minute, "replayed", func() bool { return !p.Status().Replaying && len(w.kept()) == 1100 })
	})
}

// What was forwarded long before the last contact is not sent again.
func TestAReplayHasAWindow(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "a day of polls, and a replay as the raced tests have it")
	within(t, func(w *world) {
		p := w.site("plant-7")
		p.run(true)
		defer p.stop()
		p.put(0, 50)
		p.delivered(time.Minute)
		time.Sleep(27 * time.Hour)
		p.put(50, 60)
		p.delivered(time.Minute)
		w.away()
		w.lose()
		w.start()
		w.eventually(5*time.Minute, "replayed", func() bool { return !p.Status().Replaying && len(w.kept()) == 10 })
	})
}

// Live messages do not wait for a replay, however long that takes; nor do
// commands.
func TestAReplayHoldsNothingUp(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		p := w.site("plant-7")
		p.park(9000, 9001)
		p.run(true)
		defer p.stop()
		p.put(0, 4000)
		p.delivered(time.Minute)
		w.away()
		w.lose()
		w.inbox.takes = 10 * time.Second
		w.start()
		w.eventually(time.Minute, "replaying", func() bool { return p.Status().Replaying })
		began := time.Now()
		p.put(4000, 4001)
		p.delivered(30 * time.Second)
		if _, err := w.central.Outbox("plant-7").List(t.Context(), holdfast.Query{}); err != nil {
			t.Error(err)
		}
		if s := p.Status(); !s.Replaying || time.Since(began) > 30*time.Second {
			t.Errorf("after %s: %+v; want it to replay still", time.Since(began), s)
		}
	})
}

// Central refuses some of a replay for good, or cannot store for a while: the
// others arrive.
func TestAReplayGetsThroughTrouble(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		p := w.site("plant-7")
		p.run(true)
		defer p.stop()
		p.met()
		p.put(0, 100)
		p.delivered(time.Minute)
		w.away()
		w.lose()
		fine := time.Now().Add(10 * time.Minute)
		w.inbox.answer = func(m *holdfast.Message) error {
			switch {
			case m.ID == "m-7":
				return holdfast.ErrConflict
			case time.Now().Before(fine) && m.ID > "m-5":
				return errors.New("storage")
			}
			return nil
		}
		w.start()
		w.eventually(30*time.Minute, "replayed", func() bool { return !p.Status().Replaying && len(w.kept()) == 99 })
		if s := p.Status(); s.Replayed != 100 {
			w.t.Errorf("replayed %d messages, want 100: each once, also the one that is refused", s.Replayed)
		}
	})
}

// stumbling is an outbox of which a message cannot be read a few times.
type stumbling struct {
	holdfast.Outbox
	left atomic.Int32
}

func (s *stumbling) Get(ctx context.Context, id holdfast.ID) (holdfast.Record, error) {
	if s.left.Add(-1) >= 0 {
		return holdfast.Record{}, errors.New("disk I/O error")
	}
	return s.Outbox.Get(ctx, id)
}

// NO-20: a site whose own store is in trouble for a moment leaves no hole in
// what central gets back.
func TestAReplayReadsAgainWhatCouldNotBeRead(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		var out *stumbling
		p := w.site("plant-7", func(c *link.SiteConfig) {
			out = &stumbling{Outbox: c.Outbox}
			c.Outbox = out
		})
		p.run(true)
		defer p.stop()
		p.met()
		p.put(0, 20)
		p.delivered(time.Minute)
		w.away()
		w.lose()
		out.left.Store(3)
		w.start()
		w.eventually(10*time.Minute, "replayed", func() bool { return !p.Status().Replaying && len(w.kept()) == 20 })
	})
}

// Edge 22: the file that remembers central is empty, damaged or gone.
func TestTheMemoryOfCentralMayBeLost(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		p := w.site("plant-7")
		p.run(true)
		p.put(0, 20)
		p.delivered(time.Minute)
		time.Sleep(2 * time.Minute)
		p.stop()
		for _, damage := range []func(name string) error{
			os.Remove,
			func(name string) error { return os.WriteFile(name, nil, 0o600) },
			func(name string) error { return os.WriteFile(name, []byte(`{"incarnation":`), 0o600) },
			func(name string) error { return os.WriteFile(name, make([]byte, 1<<20), 0o600) },
		} {
			if err := damage(p.conf.File + ".central"); err != nil {
				t.Fatal(err)
			}
			p.renew()
			p.run(true)
			w.eventually(time.Minute, "replayed", func() bool { s := p.Status(); return s.Replayed == 20 && !s.Replaying })
			p.stop()
		}
		if got := len(w.kept()); got != 20 {
			t.Errorf("central has %d messages, want 20", got)
		}
	})
}
