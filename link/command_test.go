package link_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/link"
	"github.com/holdfast-mq/holdfast/transport/transporttest"
)

// park brings messages from, up to but not including, to into the state parked,
// in a lane of their own.
func (p *plant) park(from, to int) {
	p.w.t.Helper()
	for n := from; n < to; n++ {
		m := message(n)
		m.Destination = "erp"
		p.parkOne(m)
	}
}

func (p *plant) parkOne(m holdfast.Message) {
	p.w.t.Helper()
	ctx := p.w.t.Context()
	if _, err := p.db.Enqueue(ctx, m); err != nil {
		p.w.t.Fatal(err)
	}
	b, err := p.db.Claim(ctx, map[string]int{m.Destination: 1})
	if err != nil || len(b.Claims) != 1 {
		p.w.t.Fatalf("claimed %d, %v", len(b.Claims), err)
	}
	c := b.Claims[0]
	_, err = p.db.Settle(ctx, holdfast.Settlement{
		Seq: c.Seq, Token: c.Token, State: holdfast.Parked, Outcome: holdfast.Permanent, Charged: true,
		Reason: holdfast.ReasonPermanent, Code: "http_422", Error: "no such\norder",
	})
	if err != nil {
		p.w.t.Fatal(err)
	}
}

// SF-28, SF-12: the parked query is paged, a message is shown, retried and
// discarded, by a UUID in any form; each is answered.
func TestCommandsReachTheSite(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		p := w.site("plant-7", func(c *link.SiteConfig) {
			c.Category = func(destination string) holdfast.Category {
				return map[string]holdfast.Category{"erp": "plc-write\x1b", "shop": holdfast.CategoryExternalSystem}[destination]
			}
		})
		p.park(0, 7)
		id, retry := uuid.New(), holdfast.RetryPolicy{First: time.Minute, Factor: 1, Attempts: 4} // of its own (F1-97)
		p.parkOne(holdfast.Message{ID: holdfast.IDOf(id), Destination: "shop", Endpoint: "E", Payload: []byte(`{ "a" : 1 }`), Retry: &retry})
		p.run(false)
		defer p.stop()
		w.eventually(time.Minute, "connected", func() bool { return p.Status().Connected })
		out := w.central.Outbox("plant-7")
		began := time.Now()
		seen := 0
		for q := (holdfast.Query{Limit: 3}); ; {
			page, err := out.List(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			seen += len(page.Records)
			for _, r := range page.Records {
				if want := map[string]holdfast.Category{"erp": "plc-write ", "shop": holdfast.CategoryExternalSystem}[r.Message.Destination]; r.Category != want {
					t.Errorf("%s has the category %q, want %q", r.Message.ID, r.Category, want)
				}
				if r.State != holdfast.Parked || r.LastError == "" || strings.Contains(r.LastError, "\n") || len(r.Message.Payload) > 0 {
					t.Errorf("got %+v", r)
				}
			}
			if q.After = page.Next; q.After == "" {
				break
			}
		}
		if took := time.Since(began); seen != 8 || took > time.Second {
			t.Errorf("got %d messages after %s, want 8 at once", seen, took)
		}
		n := strings.ReplaceAll(id.String(), "-", "")
		r, err := out.Get(t.Context(), holdfast.ID(n))
		if err != nil || string(r.Message.Payload) != `{ "a" : 1 }` || len(r.History) == 0 || r.Message.Destination != "shop" || r.Category != holdfast.CategoryExternalSystem || r.Reason != holdfast.ReasonPermanent {
			t.Errorf("got %+v, %v", r, err)
		}
		if diff := cmp.Diff(r.Message.Retry, &retry); diff != "" {
			t.Errorf("its own retries (-got +want):\n%s", diff)
		}
		r, err = out.Requeue(t.Context(), holdfast.ID(n), holdfast.Requeue{TTL: time.Hour, Actor: "anna"})
		if err != nil || r.State != holdfast.Pending || r.Failures != 0 || r.Category != holdfast.CategoryExternalSystem {
			t.Errorf("got %+v, %v", r, err)
		}
		if _, err := out.Requeue(t.Context(), holdfast.ID(n), holdfast.Requeue{}); !errors.Is(err, holdfast.ErrState) {
			t.Errorf("again: got %v, want a refusal by its state", err)
		}
		here := p.is(holdfast.IDOf(id), holdfast.Pending)
		if last := here.History[len(here.History)-1]; last.Actor != "central:anna" {
			t.Errorf("got actor %q", last.Actor)
		}
		if r, err := out.Discard(t.Context(), "m-3", "anna"); err != nil || r.State != holdfast.Discarded {
			t.Errorf("got %+v, %v", r, err)
		}
		p.is("m-3", holdfast.Discarded)
		if _, err := out.Get(t.Context(), "nothing"); !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("got %v, want not found", err)
		}
		if _, err := out.Get(t.Context(), "in valid"); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("got %v, want invalid", err)
		}
		if _, err := w.central.Ask(t.Context(), "plant-7", link.Command{Verb: "dance"}); err == nil || !strings.Contains(err.Error(), "older") {
			t.Errorf("got %v, want that the site does not know it", err)
		}
		sites, err := w.central.Sites(t.Context())
		if err != nil || len(sites) != 1 || !sites[0].Connected || sites[0].Version != "1.2.3" || sites[0].Seen.IsZero() {
			t.Errorf("got %+v, %v", sites, err)
		}
	})
}

// SF-28: who asks for a site that is away hears that, and since when.
func TestASiteThatIsAwayIsSaidToBe(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		p := w.site("plant-7")
		out := w.central.Outbox("plant-7")
		_, err := out.List(t.Context(), holdfast.Query{})
		if away, ok := errors.AsType[*link.ErrNotReachable](err); !ok || !away.LastSeen.IsZero() || !strings.Contains(err.Error(), "never") {
			t.Errorf("got %v, want that never seen", err)
		}
		p.run(false)
		w.eventually(time.Minute, "connected", func() bool { return p.Status().Connected })
		time.Sleep(time.Hour)
		p.stop()
		gone := time.Now()
		time.Sleep(10 * time.Minute)
		began := time.Now()
		_, err = out.List(t.Context(), holdfast.Query{})
		away, ok := errors.AsType[*link.ErrNotReachable](err)
		if !ok || away.LastSeen.Sub(gone).Abs() > time.Second || time.Since(began) > time.Second {
			t.Errorf("got %v after %s, want at once that it was last seen %s", err, time.Since(began), gone)
		}
		if _, err := w.central.Outbox("plant-9").Get(t.Context(), "m"); !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("got %v, want that there is no such site", err)
		}
	})
}

// A command whose answer is lost on the way is done once, and answered.
func TestACommandIsDoneOnce(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		p := w.site("plant-7")
		p.park(0, 12)
		cut := transporttest.Cutter{Under: w.direct, Plan: func(n int) transporttest.Limit {
			if n%2 == 0 { // each other connection breaks somewhere in a poll or in the answers
				return transporttest.Limit{Written: -1, Read: 400 + 37*n}
			}
			return transporttest.Whole()
		}}
		w.via(cut.Dial)
		p.run(false)
		defer p.stop()
		w.eventually(time.Minute, "connected", func() bool { return p.Status().Connected })
		out := w.central.Outbox("plant-7")
		for n := range 12 {
			id := message(n).ID
			_, err := out.Requeue(t.Context(), id, holdfast.Requeue{Actor: "anna"})
			for tries := 0; err != nil && tries < 20; tries++ {
				// Who is not sure looks first: an honest error lets him.
				if _, away := errors.AsType[*link.ErrNotReachable](err); !away && !errors.Is(err, link.ErrNoAnswer) {
					t.Fatalf("%s: %v", id, err)
				}
				time.Sleep(30 * time.Second)
				if r, look := out.Get(t.Context(), id); look == nil && r.State == holdfast.Pending {
					err = nil
				} else if look == nil {
					_, err = out.Requeue(t.Context(), id, holdfast.Requeue{Actor: "anna"})
				}
			}
			r := p.is(id, holdfast.Pending)
			requeued := 0
			for _, e := range r.History {
				if e.Kind == holdfast.Requeued {
					requeued++
				}
			}
			if err != nil || requeued != 1 || r.Cycle != 2 {
				t.Errorf("%s: %v, requeued %d times", id, err, requeued)
			}
		}
	})
}

// Of two processes with one credential the newer gets the commands, and neither
// turns in circles.
func TestTwoThatPollForOneSite(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		p := w.site("plant-7")
		p.park(0, 3)
		p.run(false)
		first := p.stop
		p.renew()
		p.run(false)
		second := p.stop
		defer first()
		defer second()
		time.Sleep(10 * time.Minute)
		w.store.mu.Lock()
		n := w.store.requests
		w.store.mu.Unlock()
		if n > 400 {
			t.Errorf("%d requests in ten minutes", n)
		}
		got := 0
		for range 20 {
			if page, err := w.central.Outbox("plant-7").List(t.Context(), holdfast.Query{}); err == nil && len(page.Records) == 3 {
				got++
			}
			time.Sleep(10 * time.Second)
		}
		if got < 10 {
			t.Errorf("%d of 20 asks were answered", got)
		}
	})
}

// A site that has taken a command and says nothing may have done it: that is another
// word than that it is away.
func TestACommandWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		c := w.caller(credentialOf(t, w.enroll("plant-7")))
		c.post(link.PollPath, "application/json", strings.NewReader(`{}`))
		ask := func() error {
			began := time.Now()
			_, err := w.central.Outbox("plant-7").Requeue(t.Context(), "m-1", holdfast.Requeue{})
			if took := time.Since(began); err == nil || took != 15*time.Second {
				t.Errorf("got %v after %s, want an error after 15 s", err, took)
			}
			return err
		}
		if away, ok := errors.AsType[*link.ErrNotReachable](ask()); !ok || away.Site != "plant-7" || away.LastSeen.IsZero() {
			t.Errorf("got %v, want that it is not reachable", away)
		}
		c.post(link.PollPath, "application/json", strings.NewReader(`{}`))
		var polling sync.WaitGroup
		polling.Go(func() {
			time.Sleep(time.Second)
			if _, _, text := c.post(link.PollPath, "application/json", strings.NewReader(`{"waitMs":10000}`)); !strings.Contains(text, `"m-1"`) {
				t.Errorf("the poll got %s, want the command", text)
			}
		})
		if err := ask(); !errors.Is(err, link.ErrNoAnswer) {
			t.Errorf("got %v, want that nobody knows", err)
		}
		polling.Wait()
	})
}

// Many ask at once; each gets its own answer.
func TestAsksSideBySide(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		p := w.site("plant-7")
		p.park(0, 30)
		p.run(false)
		defer p.stop()
		w.eventually(time.Minute, "connected", func() bool { return p.Status().Connected })
		var all sync.WaitGroup
		for n := range 30 {
			all.Go(func() {
				r, err := w.central.Outbox("plant-7").Get(t.Context(), message(n).ID)
				if err != nil || r.Message.ID != message(n).ID {
					t.Errorf("message %d: got %s, %v", n, r.Message.ID, err)
				}
			})
		}
		all.Wait()
	})
}

// failing is an outbox that cannot be read.
type failing struct {
	holdfast.Outbox
	err error
}

func (f *failing) Get(context.Context, holdfast.ID) (holdfast.Record, error) {
	return holdfast.Record{}, f.err
}

// What a site cannot do is said to be the site's trouble.
func TestTheTroubleIsTheSites(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		fault := &failing{}
		p := w.site("plant-7", func(c *link.SiteConfig) {
			fault.Outbox = c.Outbox
			c.Outbox = fault
		})
		p.run(false)
		w.eventually(time.Minute, "connected", func() bool { return p.Status().Connected })
		out := w.central.Outbox("plant-7")
		check := func(err error, want link.Trouble) {
			t.Helper()
			if at, ok := errors.AsType[*link.ErrSite](err); !ok || at.Site != "plant-7" || at.Trouble != want {
				t.Errorf("got %v, want that it is %s at plant-7", err, want)
			}
		}
		for _, c := range []struct {
			err  error
			want link.Trouble
		}{
			{fmt.Errorf("read: %w", holdfast.ErrDiskFull), link.DiskFull},
			{fmt.Errorf("read: %w", holdfast.ErrUnavailable), link.Unavailable},
			{holdfast.ErrClosed, link.Unavailable},
			{errors.New("anything"), link.Failed},
		} {
			fault.err = c.err
			_, err := out.Get(t.Context(), "m")
			check(err, c.want)
		}
		_, err := w.central.Ask(t.Context(), "plant-7", link.Command{Verb: "dance"})
		check(err, link.Unknown)
		p.stop() // it was here a moment ago, and takes nothing more
		var asking sync.WaitGroup
		for range 64 {
			asking.Go(func() {
				if _, err := out.Get(t.Context(), "m"); err == nil {
					t.Error("got an answer of nobody")
				}
			})
		}
		time.Sleep(time.Second)
		_, err = out.Get(t.Context(), "m")
		check(err, link.Busy)
		asking.Wait()
	})
}

// clocked is a site's outbox, all of which is held, since its clock is doubted.
type clocked struct {
	holdfast.Outbox
	older bool // its program knows no such query
}

func (c *clocked) List(ctx context.Context, q holdfast.Query) (holdfast.Page, error) {
	if !q.Held && !c.older {
		return c.Outbox.List(ctx, q)
	}
	if q.After == "" && !c.older {
		return holdfast.Page{Next: "2"}, nil // so much is looked at, and none of it is held
	}
	p, err := c.Outbox.List(ctx, holdfast.Query{States: q.States, Destination: q.Destination})
	slices.Reverse(p.Records)
	for i := range p.Records {
		if !c.older {
			p.Records[i].HeldUntil = time.Now().Add(time.Hour)
		}
	}
	return p, err
}

// F1-51: what a site holds, since it doubts its clock, is listed at central: all states
// of it, in its order. A site whose program is older is not taken for one that holds all.
func TestWhatASiteHoldsIsListed(t *testing.T) {
	t.Parallel()
	for name, older := range map[string]bool{"of this release": false, "older": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			within(t, func(w *world) {
				t := w.t
				p := w.site("plant-7", func(c *link.SiteConfig) { c.Outbox = &clocked{c.Outbox, older} })
				p.park(0, 2)
				if _, err := p.db.Enqueue(t.Context(), holdfast.Message{ID: "waits", Destination: "erp", Endpoint: "E", Payload: []byte("1")}); err != nil {
					t.Fatal(err)
				}
				p.run(false)
				defer p.stop()
				w.eventually(time.Minute, "connected", func() bool { return p.Status().Connected })
				out := w.central.Outbox("plant-7")
				var ids []holdfast.ID
				page, err := out.List(t.Context(), holdfast.Query{Held: true, Destination: "erp"})
				if err == nil && page.Next != "" {
					page, err = out.List(t.Context(), holdfast.Query{Held: true, Destination: "erp", After: page.Next})
				}
				for _, r := range page.Records {
					ids = append(ids, r.Message.ID)
				}
				if older {
					if err == nil || !strings.Contains(err.Error(), "older") {
						t.Errorf("got %v, %v; want that it cannot tell", ids, err)
					}
					return
				}
				if diff := cmp.Diff(ids, []holdfast.ID{"m-0", "m-1", "waits"}); diff != "" || err != nil {
					t.Errorf("%v (-got +want):\n%s", err, diff)
				}
			})
		})
	}
}
