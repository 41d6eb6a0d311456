package holdfast_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

func waits(p holdfast.RetryPolicy, n int) []time.Duration {
	var list []time.Duration
	for i := range n {
		list = append(list, p.Wait(i))
	}
	return list
}

// OI-05, WH-03, SF-06: each source's timetable by the one formula.
func TestTimetablesOfTheSources(t *testing.T) {
	t.Parallel()
	s, m, h := time.Second, time.Minute, time.Hour
	for name, c := range map[string]struct {
		policy holdfast.RetryPolicy
		want   []time.Duration
	}{
		"between services": {holdfast.DefaultRetry(), []time.Duration{2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 64 * s, 128 * s, 256 * s, 5 * m, 5 * m}},
		"webhooks": {
			holdfast.RetryPolicy{First: 25 * s, Factor: 4, Max: 52000 * s},
			[]time.Duration{25 * s, 100 * s, 400 * s, 1600 * s, 6400 * s, 25600 * s, 52000 * s},
		},
		"fixed": {holdfast.RetryPolicy{First: 30 * s, Factor: 1}, []time.Duration{30 * s, 30 * s, 30 * s}},
		"list":  {holdfast.RetryPolicy{List: []time.Duration{s, m, h}}, []time.Duration{s, m, h, h, h}},
	} {
		if d := cmp.Diff(waits(c.policy, len(c.want)), c.want); d != "" {
			t.Errorf("%s (-got +want):\n%s", name, d)
		}
	}
}

// A huge exponent is a long wait, never a negative one; jitter only delays,
// and Retry-After is a minimum.
func TestWaitsNeverShrink(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := holdfast.RetryPolicy{
			First:  time.Duration(rapid.Int64Range(0, int64(100*time.Hour)).Draw(t, "first")),
			Factor: rapid.Float64Range(1, 1e6).Draw(t, "factor"),
			Jitter: time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "jitter")),
		}
		n := rapid.IntRange(0, 100000).Draw(t, "n")
		after := time.Duration(rapid.Int64Range(0, int64(48*time.Hour)).Draw(t, "after"))
		w := p.Wait(n)
		if w < p.First || p.Wait(n+1) < w {
			t.Fatalf("wait %d is %s, the next %s, the first %s", n, w, p.Wait(n+1), p.First)
		}
		if got := p.Next(n, after); got < w || got < min(after, 24*time.Hour) || got > max(w+p.Jitter, 24*time.Hour) {
			t.Fatalf("next is %s; wait %s, jitter %s, asked for %s", got, w, p.Jitter, after)
		}
	})
}

// OI-05: messages that failed together do not come back together, so each wait
// is drawn anew from all of the jitter (F1-99).
func TestJitterSpreadsRetries(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db := openStore(t)
		defer closeStore(t, db)
		const first, jitter = time.Minute, 10 * time.Second
		policy := holdfast.RetryPolicy{First: first, Factor: 1, Jitter: jitter, Attempts: 100}
		to := &script{answer: always(errTransient)}
		enqueue(t, db, holdfast.Message{Destination: "a"})
		stop := dispatch(t, &holdfast.Dispatcher{Store: db, Routes: map[string]holdfast.Route{"a": {Deliverer: to, Retry: policy}}})
		time.Sleep(100 * (first + jitter))
		if err := stop(); err != nil {
			t.Error(err)
		}
		var waits []time.Duration
		tries := to.tries()
		for i := range tries[1:] {
			waits = append(waits, tries[i+1].at.Sub(tries[i].at))
		}
		shortest, longest := slices.Min(waits), slices.Max(waits)
		if len(waits) != 99 || shortest < first || shortest > first+jitter/4 || longest < first+jitter*3/4 || longest > first+jitter+time.Second {
			t.Errorf("%d waits between %s and %s; want 99, spread from %s to %s", len(waits), shortest, longest, first, first+jitter)
		}
	})
}

// SF-29: the budget counts attempts, the first included.
func TestBudget(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		attempts, failures int
		want               bool
	}{{6, 5, false}, {6, 6, true}, {1, 1, true}, {holdfast.Unlimited, math.MaxInt, false}} {
		if got := (holdfast.RetryPolicy{Attempts: c.attempts}).Spent(c.failures); got != c.want {
			t.Errorf("%d attempts, %d failures: spent is %t", c.attempts, c.failures, got)
		}
	}
}

func TestPoliciesThatMakeNoSense(t *testing.T) {
	t.Parallel()
	for field, p := range map[string]holdfast.RetryPolicy{
		"retry.first":    {First: -1},
		"retry.max":      {Max: -1},
		"retry.factor":   {Factor: 0.5},
		"retry.attempts": {Attempts: -2},
		"retry.list":     {First: 1, List: []time.Duration{1}},
		"retry.list[1]":  {List: []time.Duration{1, -1}},
	} {
		fault, ok := errors.AsType[*holdfast.FieldError](p.Validate())
		if !ok || fault.Field != field {
			t.Errorf("%+v: got %v, want a fault of %s", p, p.Validate(), field)
		}
	}
	if err := (holdfast.RetryPolicy{First: 2 * time.Second, Max: time.Second}).Validate(); err == nil || !strings.Contains(err.Error(), "longer than max 1s") {
		t.Errorf("first over max: %v", err)
	}
	const tenYears = 10 * 365 * 24 * time.Hour
	for p, ok := range map[*holdfast.RetryPolicy]bool{
		{First: tenYears, Max: tenYears, Jitter: tenYears}: true, {First: tenYears + 1}: false, {Max: tenYears + 1}: false, {Jitter: tenYears + 1}: false,
	} {
		if err := p.Validate(); (err == nil) != ok {
			t.Errorf("%+v: %v", p, err)
		}
	}
	if err := holdfast.DefaultRetry().Validate(); err != nil {
		t.Errorf("the default: %v", err)
	}
}

func TestTimetableIsPrinted(t *testing.T) {
	t.Parallel()
	want := `attempt 1 at once
attempt 2 after 2s (+2s)
attempt 3 after 4s (+6s)
attempt 4 after 8s (+14s)
attempt 5 after 16s (+30s)
attempt 6 after 32s (+1m2s)
each wait up to 500ms longer
`
	if d := cmp.Diff(holdfast.DefaultRetry().Timetable(20), want); d != "" {
		t.Errorf("(-got +want):\n%s", d)
	}
	endless := holdfast.RetryPolicy{First: time.Minute, Factor: 1, Attempts: holdfast.Unlimited}
	if got := endless.Timetable(2); !strings.Contains(got, "every 1m0s without end") {
		t.Errorf("got %s", got)
	}
}
