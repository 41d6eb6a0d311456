package link_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/link"
	"github.com/holdfast-mq/holdfast/link/sites"
)

// F1-50: a token that has ended by a clock that is doubted is not said to be spent
// or too old, and is good again when the clock is.
func TestWhoEnrollsIsToldThatTheClockIsDoubted(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		token, err := w.central.Add(t.Context(), "plant-7", "")
		if err != nil {
			t.Fatal(err)
		}
		doubt := &doubting{Store: w.store.Store, doubts: true}
		w.store.Store = doubt
		conf := link.EnrollConfig{URL: address, Token: token, File: filepath.Join(t.TempDir(), "credential"), Dial: w.connect}
		_, err = link.Enroll(t.Context(), conf)
		if !errors.Is(err, sites.ErrDoubted) || errors.Is(err, link.ErrToken) || !strings.Contains(err.Error(), "holdfast sites rotate") {
			t.Errorf("got %v", err)
		}
		doubt.doubts = false
		if id, err := link.Enroll(t.Context(), conf); err != nil || id.Site != "plant-7" {
			t.Errorf("got %+v, %v", id, err)
		}
	})
}

// F1-50: a site that was away does not know for how long where the clock shows a
// time before its last contact. It deletes nothing that central may lack, and
// sends all of it.
func TestAReplayDoesNotBelieveAContactInTheFuture(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "days of sweeps, and a replay as the raced tests have it")
	within(t, func(w *world) {
		t := w.t
		p := w.site("plant-7")
		p.run(true)
		p.put(0, 50)
		p.delivered(time.Minute)
		time.Sleep(2 * time.Minute)
		p.stop()
		text, err := os.ReadFile(p.conf.File + ".central")
		if err != nil {
			t.Fatal(err)
		}
		day, ahead := time.Now().UTC().Format("2006-01-02"), time.Now().UTC().Add(40*24*time.Hour).Format("2006-01-02")
		if !strings.Contains(string(text), day) {
			t.Fatalf("the file has no time of today: %s", text)
		}
		if err := os.WriteFile(p.conf.File+".central", []byte(strings.Replace(string(text), day, ahead, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		w.away()
		w.lose()
		p.renew()
		stop := p.sweep(24 * time.Hour)
		time.Sleep(5 * 24 * time.Hour)
		stop()
		w.start()
		p.run(true)
		defer p.stop()
		w.eventually(5*time.Minute, "replayed", func() bool { return !p.Status().Replaying && len(w.kept()) == 50 })
	})
}

// F1-50: by a clock that is doubted the window does not end earlier.
func TestAReplayLeavesOutTimeThatIsDoubted(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "a day of polls, and a replay as the raced tests have it")
	within(t, func(w *world) {
		p := w.site("plant-7", func(c *link.SiteConfig) {
			c.Outbox = &aheadBy{Outbox: c.Outbox, claimed: 27 * time.Hour}
		})
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
		w.eventually(5*time.Minute, "replayed", func() bool { return !p.Status().Replaying && len(w.kept()) == 60 })
	})
}

// doubting is a store of sites that may doubt its clock.
type doubting struct {
	sites.Store
	doubts bool
}

func (d *doubting) EnrollSite(ctx context.Context, token, credential [32]byte) (string, error) {
	if d.doubts {
		return "", fmt.Errorf("enroll site: %w", sites.ErrDoubted)
	}
	return d.Store.EnrollSite(ctx, token, credential)
}

// aheadBy is an outbox whose clock claims more than was seen to pass.
type aheadBy struct {
	holdfast.Outbox
	claimed time.Duration
}

func (a *aheadBy) Doubt() holdfast.Doubt { return holdfast.Doubt{Claimed: a.claimed} }
func (a *aheadBy) HearTime(time.Time)    {}
