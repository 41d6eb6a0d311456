package site_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/site"
	"github.com/holdfast-mq/holdfast/track"
)

// SF-03, SF-25: delivered and refused for good are told at once, and nothing of
// them is buffered; what may pass is buffered and tried again.
func TestACallTellsWhatTheTargetSays(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		to := &target{answer: func(holdfast.Message) ([]byte, error) { return []byte(`{"seat": 7}`), nil }}
		p := run(t, t.TempDir(), erp(to))
		defer p.stop()

		a := p.call(t, site.Call{ID: "a", Payload: []byte(`{"order": 42}`)})
		if a.State != holdfast.Delivered || a.Buffered || string(a.Response) != `{"seat": 7}` || a.Failure != nil {
			t.Errorf("delivered: got %+v", a)
		}
		p.wantStatus(t, "a", track.Delivered)

		to.become(says(errRefused))
		_, err := p.CachedCall(t.Context(), site.Call{ID: "b", Destination: "erp", Endpoint: "Book"})
		refused, ok := errors.AsType[*holdfast.RefusedError](err)
		if !ok || refused.ID != "b" || refused.HTTPStatus() != 422 || !strings.Contains(refused.Text, "no such plant") {
			t.Errorf("refused: got %#v", err)
		}
		if o := p.wantStatus(t, "b", track.Failed); o.Code != "http_422" || o.Ended.IsZero() || o.Category != holdfast.CategoryExternalSystem {
			t.Errorf("refused: it is kept as %+v", o)
		}

		to.become(says(errBusy))
		a = p.call(t, site.Call{ID: "c"})
		if a.State != holdfast.Pending || !a.Buffered || a.Failure == nil || a.Failure.Code != "http_503" {
			t.Errorf("busy: got %+v", a)
		}
		p.wantStatus(t, "c", track.Retrying)
		to.become(nil)
		time.Sleep(31 * time.Second) // SF-06
		p.wantStatus(t, "c", track.Delivered)
	})
}

// SF-05: no attempt is waited for where the program says so.
func TestACallThatIsForLaterReturnsAtOnce(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		to := &target{}
		p := run(t, t.TempDir(), erp(to))
		defer p.stop()
		a := p.call(t, site.Call{ID: "a", Later: true})
		if a.State != holdfast.Pending || !a.Buffered || a.Response != nil {
			t.Errorf("got %+v, want it buffered", a)
		}
		time.Sleep(time.Second)
		p.wantStatus(t, "a", track.Delivered)
	})
}

// SF-14, SF-36: a repeat of an id is the same call, is answered in the same way
// as far as that is known, and does not call again; other content is a conflict.
func TestARepeatDoesNotCallTwice(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		to := &target{}
		p := run(t, t.TempDir(), erp(to))
		defer p.stop()
		const n, d = "0190c5a27b1e7c3d9a4f1d2e3f405162", "0190c5a2-7b1e-7c3d-9a4f-1d2e3f405162"
		first := p.call(t, site.Call{ID: n, Payload: []byte("1")})
		again := p.call(t, site.Call{ID: d, Payload: []byte("1"), Origin: notify.Origin{Execution: "another run"}})
		if first.ID != d || again.ID != d || !again.Duplicate || again.State != holdfast.Delivered || to.count() != 1 {
			t.Errorf("got %+v and %+v after %d calls", first, again, to.count())
		}
		if _, err := p.CachedCall(t.Context(), site.Call{ID: d, Destination: "erp", Endpoint: "Book", Payload: []byte("2")}); !errors.Is(err, holdfast.ErrConflict) {
			t.Errorf("other content: got %v, want ErrConflict", err)
		}
		to.become(says(errRefused))
		for range 2 {
			_, err := p.CachedCall(t.Context(), site.Call{ID: "no", Destination: "erp", Endpoint: "Book"})
			if e, ok := errors.AsType[*holdfast.RefusedError](err); !ok || e.Code != "http_422" {
				t.Errorf("a repeat of what was refused: got %v", err)
			}
		}
		if to.count() != 2 {
			t.Errorf("the target was called %d times, want 2", to.count())
		}
	})
}

// SF-06, SF-07, SF-29, SF-31: every thirty seconds, fifty times after the first
// attempt; an attempt that found nobody is not one of them.
func TestACallIsTriedAtAFixedInterval(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		to := &target{answer: says(errNobody)}
		p := run(t, t.TempDir(), erp(to))
		defer p.stop()
		p.call(t, site.Call{ID: "a"})
		time.Sleep(10*time.Minute + time.Second)
		nobody := to.count()
		if o := p.wantStatus(t, "a", track.Retrying); o.Failures != 0 || o.Retries != 20 || nobody != 21 {
			t.Errorf("after ten minutes without anybody: %d attempts, %d of them retries, %d counted", nobody, o.Retries, o.Failures)
		}
		to.become(says(errBusy))
		time.Sleep(time.Hour)
		if o := p.wantStatus(t, "a", track.Parked); o.Failures != 51 || o.Retries != 20+51 || to.count()-nobody != 51 {
			t.Errorf("parked after %d attempts, %d of them counted, want 51; %d retries in all", to.count()-nobody, o.Failures, o.Retries)
		}
		_, made := to.made()
		for i, at := range made[1:] {
			if wait := at.Sub(made[i]); wait < 30*time.Second || wait > 31*time.Second {
				t.Errorf("attempt %d came after %s, want 30s", i+2, wait)
			}
		}
	})
}

// SF-24, SF-33, SF-34: each attempt of a call is told once, with what it came to
// and how the call stands; a notification is no call, and a blank name is none.
func TestEachAttemptOfACallIsTold(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"plant-7": "plant-7", " ": "", "": ""} {
		racetest.Bubble(t, func(t *testing.T) {
			to := &target{answer: says(errBusy)}
			var mu sync.Mutex
			var told []site.Attempt
			p := run(t, t.TempDir(), func(c *site.Config) {
				erp(to)(c)
				c.Name = name
				c.Central = holdfast.Route{Deliverer: &target{}}
				c.OnAttempt = func(_ context.Context, a site.Attempt) error {
					mu.Lock()
					defer mu.Unlock()
					told = append(told, a)
					return nil
				}
			})
			defer p.stop()
			began := time.Now()
			const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
			from := notify.Origin{Instance: "mixer-3", Script: "recipe.lua", Execution: "run 1", ParentExecution: "run 0", Trace: holdfast.Trace{Parent: trace}}
			p.call(t, site.Call{ID: "a", Origin: from})
			if _, err := p.Notify("operators").Send(t.Context(), "Tank 4 is full", "Level 98 %."); err != nil {
				t.Fatal(err)
			}
			to.become(func(holdfast.Message) ([]byte, error) {
				time.Sleep(3 * time.Second)
				return nil, errRefused
			})
			time.Sleep(time.Minute)
			mu.Lock()
			defer mu.Unlock()
			from.Site = want
			a := site.Attempt{
				ID: "a", Channel: site.APIOutbound, Category: holdfast.CategoryExternalSystem, Destination: "erp", Endpoint: "Book", Origin: from, Created: began,
			}
			first, second := a, a
			first.Outcome, first.Status, first.Code, first.HTTPStatus, first.Error, first.Occurred = site.OutcomeTransientFailure, track.Retrying, "http_503", 503, errBusy.Error(), began
			second.Outcome, second.Status, second.Code, second.HTTPStatus, second.Error, second.Retries = site.OutcomePermanentFailure, track.Parked, "http_422", 422, errRefused.Error(), 1
			second.Occurred, second.Took = began.Add(30*time.Second), 3*time.Second
			// The store counts in microseconds, and rounds up.
			if d := cmp.Diff(told, []site.Attempt{first, second}, cmpopts.EquateApproxTime(time.Millisecond)); d != "" {
				t.Errorf("site %q (-got +want):\n%s", name, d)
			}
		})
	}
}

// SF-04, SF-07: a call brings its own number and interval; without limit it is
// tried for ever.
func TestACallBringsItsOwnRetries(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		to := &target{answer: says(errBusy)}
		p := run(t, t.TempDir(), erp(to))
		defer p.stop()
		p.call(t, site.Call{ID: "twice", Retries: 1, Interval: 5 * time.Second})
		time.Sleep(6 * time.Second)
		if o := p.wantStatus(t, "twice", track.Parked); to.count() != 2 || o.Retries != 1 {
			t.Errorf("got %d attempts and %d retries, want 2 and 1", to.count(), o.Retries)
		}
		p.call(t, site.Call{ID: "ever", Retries: holdfast.Unlimited})
		time.Sleep(2 * time.Hour)
		if o := p.wantStatus(t, "ever", track.Retrying); o.Retries < 200 {
			t.Errorf("after two hours it was retried %d times", o.Retries)
		}
	})
}

// SF-01, SF-13, SF-30, SF-36: what was taken is there after a restart, with all
// that was said of it, also when the instance that sent it is not.
func TestACallOutlivesItsProgram(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		folder, to := t.TempDir(), &target{}
		from := notify.Origin{Instance: "mixer-3", Script: "recipe.lua", Execution: "run 1", ParentExecution: "run 0"}
		p := open(t, folder, erp(to)) // nobody delivers yet: the program dies after its call
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		a, err := p.CachedCall(ctx, site.Call{
			ID: "a", Destination: "erp", Endpoint: "Book", Payload: []byte(`{"n":1}`), Origin: from, Retries: 3, Interval: time.Minute, Headers: map[string]string{"lot": "9"},
		})
		cancel()
		if err != nil || !a.Buffered {
			t.Fatalf("got %+v, %v", a, err)
		}
		p.stop()

		p = run(t, folder, erp(to))
		defer p.stop()
		time.Sleep(time.Second)
		o := p.wantStatus(t, "a", track.Delivered)
		if from.Site = "plant-7"; o.Origin != from {
			t.Errorf("it comes from %+v, want %+v", o.Origin, from)
		}
		calls, _ := to.made()
		m := calls[0]
		if string(m.Payload) != `{"n":1}` || m.Source != "plant-7" || m.Headers["lot"] != "9" || m.Retry == nil || m.Retry.Attempts != 4 || m.Retry.First != time.Minute {
			t.Errorf("the target got %+v", m)
		}
	})
}

// SF-02: databases are written in the same way, and a program may have further
// categories, each with a deliverer of its own.
func TestEachCategoryHasItsOwnDeliverer(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		api, database, plc := &target{}, &target{}, &target{}
		p := run(t, t.TempDir(), func(c *site.Config) {
			c.Destinations = map[string]site.Destination{
				"erp":     {Category: holdfast.CategoryExternalSystem, Route: holdfast.Route{Deliverer: api}},
				"history": {Category: holdfast.CategoryCachedDBWrite, Route: holdfast.Route{Deliverer: database}},
				"line-4":  {Category: "plc-write", Route: holdfast.Route{Deliverer: plc}},
			}
		})
		defer p.stop()
		p.call(t, site.Call{})
		if _, err := p.CachedWrite(t.Context(), site.Call{Destination: "history", Endpoint: "insert"}); err != nil {
			t.Error(err)
		}
		if _, err := p.Submit(t.Context(), "plc-write", site.Call{Destination: "line-4", Endpoint: "speed"}); err != nil {
			t.Error(err)
		}
		if api.count() != 1 || database.count() != 1 || plc.count() != 1 {
			t.Errorf("they were called %d, %d and %d times", api.count(), database.count(), plc.count())
		}
		_, err := p.CachedWrite(t.Context(), site.Call{Destination: "erp", Endpoint: "x"})
		if !errors.Is(err, holdfast.ErrInvalid) || !strings.Contains(err.Error(), "external-system") {
			t.Errorf("a write to a system that is called: got %v", err)
		}
	})
}

// A call that cannot be taken says everything that is wrong with it.
func TestAWrongCallIsRefused(t *testing.T) {
	t.Parallel()
	p := open(t, t.TempDir(), erp(&target{}))
	defer p.stop()
	for name, c := range map[string]struct {
		call site.Call
		want []string
	}{
		"nowhere":    {site.Call{Destination: "epr", Endpoint: "x"}, []string{`destination "epr"`, "known are erp"}},
		"wait":       {site.Call{Wait: -1}, []string{"wait", "Later"}},
		"both":       {site.Call{Wait: time.Second, Later: true}, []string{"must not be set with Later"}},
		"numbers":    {site.Call{Retries: -2, Interval: -1}, []string{"retries", "interval"}},
		"headers":    {site.Call{Headers: map[string]string{"HF-script": "x"}}, []string{"headers.HF-script", "use another name"}},
		"origin":     {site.Call{Origin: notify.Origin{Script: strings.Repeat("x", 257)}}, []string{"sourceScript", "256"}},
		"control":    {site.Call{Origin: notify.Origin{Instance: "a\nb"}}, []string{"originInstance"}},
		"id":         {site.Call{ID: "a b"}, []string{"id"}},
		"no address": {site.Call{Destination: "erp"}, []string{"endpoint"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.call.Destination == "" {
				c.call.Destination, c.call.Endpoint = "erp", "x"
			}
			_, err := p.CachedCall(t.Context(), c.call)
			if !errors.Is(err, holdfast.ErrInvalid) {
				t.Fatalf("got %v, want ErrInvalid", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		})
	}
	t.Cleanup(func() {
		if n := p.db.Counts().Pending; n != 0 {
			t.Errorf("%d were taken all the same", n)
		}
	})
}

// A destination that is down is not waited for: its calls are buffered at once.
func TestACallDoesNotWaitForWhatIsDown(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		p := run(t, t.TempDir(), erp(&target{answer: says(errNobody)}))
		defer p.stop()
		for range 10 {
			p.call(t, site.Call{Later: true})
		}
		time.Sleep(time.Minute)
		began := time.Now()
		if a := p.call(t, site.Call{}); !a.Buffered || time.Since(began) != 0 {
			t.Errorf("got %+v after %s", a, time.Since(began))
		}
	})
}
