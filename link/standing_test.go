package link_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/link"
	"github.com/holdfast-mq/holdfast/notify"
)

// NO-04: a site is told of its own notifications; that central does not know one is no
// error of the link's, and the other way round. No proxy keeps an answer.
func TestASiteIsToldHowItsNotificationStands(t *testing.T) {
	t.Parallel()
	own, broken := holdfast.NewID(), holdfast.NewID()
	stands := notify.Standing{ID: own, Status: notify.Delivered, Retries: 3, LastError: "busy", Enqueued: time.Unix(100, 0).UTC(), Delivered: time.Unix(200, 0).UTC()}
	within(t, func(w *world) {
		t := w.t
		p, other := w.site("plant-7"), w.site("plant-8")
		if got, err := p.Standing(t.Context(), own); err != nil || got != stands {
			t.Errorf("got %+v, %v; want %+v", got, err, stands)
		}
		for name, ask := range map[string]func() (notify.Standing, error){
			"unknown":        func() (notify.Standing, error) { return p.Standing(t.Context(), holdfast.NewID()) },
			"another site's": func() (notify.Standing, error) { return other.Standing(t.Context(), own) },
		} {
			if got, err := ask(); !errors.Is(err, holdfast.ErrNotFound) {
				t.Errorf("%s: got %+v, %v; want that it is not known", name, got, err)
			}
		}
		if _, err := p.Standing(t.Context(), broken); err == nil || errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("a store that fails: got %v", err)
		}
		_, header, text := w.caller(credentialOf(t, p.conf.File)).post(link.StandingPath, "application/json", strings.NewReader(`{"id":"`+string(own)+`"}`))
		if !strings.Contains(text, `"known":true`) || header.Get("Cache-Control") != "no-store" {
			t.Errorf("got %s, with %v", text, header)
		}
	}, func(c *link.CentralConfig) {
		c.Standing = func(_ context.Context, site string, id holdfast.ID) (notify.Standing, error) {
			switch {
			case id == broken:
				return notify.Standing{}, errors.New("disk I/O error")
			case site == "plant-7" && id == own:
				return stands, nil
			}
			return notify.Standing{}, holdfast.ErrNotFound
		}
	})
}

// NO-04: a program that asks has an answer within ten seconds, also where central says
// nothing, and others ask before it.
func TestAQuestionHasABound(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		p := w.site("plant-7")
		w.via(blackHole)
		began := time.Now()
		var asking sync.WaitGroup
		for range 8 {
			asking.Go(func() {
				if _, err := p.Standing(t.Context(), holdfast.NewID()); err == nil || errors.Is(err, holdfast.ErrNotFound) || time.Since(began) > 10*time.Second {
					t.Errorf("got %v after %s, want within 10 s that central was not asked", err, time.Since(began))
				}
			})
		}
		asking.Wait()
	})
}

// NO-04: many programs that ask how their notifications stand wait for each
// other, not what is forwarded meanwhile.
func TestQuestionsDoNotSlowForwarding(t *testing.T) {
	t.Parallel()
	var atOnce, most atomic.Int64
	within(t, func(w *world) {
		t := w.t
		w.inbox.takes = 100 * time.Millisecond
		p := w.site("plant-7")
		ctx, cancel := context.WithCancel(t.Context())
		var asking sync.WaitGroup
		var asked atomic.Int64
		for range 30 {
			asking.Go(func() {
				for ctx.Err() == nil {
					switch _, err := p.Standing(ctx, holdfast.NewID()); {
					case err == nil:
						asked.Add(1)
					case ctx.Err() == nil:
						t.Errorf("after %d questions: %v", asked.Load(), err)
						return
					}
				}
			})
		}
		time.Sleep(5 * time.Second)
		p.run(true)
		began := time.Now()
		p.backlog(0, 2000)
		p.delivered(time.Minute)
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("2000 messages took %s", took)
		}
		cancel()
		asking.Wait()
		p.stop()
		if asked.Load() < 30 || most.Load() > 4 {
			t.Errorf("%d questions were answered, up to %d at once; want many, up to 4", asked.Load(), most.Load())
		}
	}, func(c *link.CentralConfig) {
		c.Standing = func(_ context.Context, _ string, id holdfast.ID) (notify.Standing, error) {
			n := atOnce.Add(1)
			defer atOnce.Add(-1)
			for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
			}
			time.Sleep(500 * time.Millisecond)
			return notify.Standing{ID: id, Status: notify.Pending}, nil
		}
	})
}

// Central bounds the questions of a site that does not bound them itself, and
// its messages have their own places.
func TestASiteAsksOnlySoMuchAtOnce(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		file := w.enroll("plant-7")
		c := w.caller(credentialOf(t, file))
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var answered, busy atomic.Int64
		for range 20 {
			all.Go(func() {
				switch status, _, _ := c.post(link.StandingPath, "application/json", strings.NewReader(`{"id":"0190c5a2-7b1e-7c3d-9a4f-1d2e3f405162"}`)); status {
				case 200:
					answered.Add(1)
				case 503:
					busy.Add(1)
				}
			})
		}
		time.Sleep(time.Second)
		s, err := link.NewSite(link.SiteConfig{URL: address, File: file, Outbox: open(t, "plant-7"), Dial: w.connect})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if _, err := s.Deliver(ctx, message(1)); err != nil {
			t.Errorf("a message beside the questions: %v", err)
		}
		if _, err := s.Standing(ctx, holdfast.NewID()); err == nil || errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("one question more: got %v, want it refused", err)
		}
		all.Wait()
		cancel()
		if answered.Load() != 8 || busy.Load() != 12 {
			t.Errorf("got %d answered and %d asked to come again, want 8 and 12", answered.Load(), busy.Load())
		}
	}, func(c *link.CentralConfig) {
		c.Standing = func(_ context.Context, _ string, id holdfast.ID) (notify.Standing, error) {
			time.Sleep(5 * time.Second)
			return notify.Standing{ID: id, Status: notify.Pending}, nil
		}
	})
}
