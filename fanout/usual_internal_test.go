package fanout

import (
	"testing"
	"time"
)

// A planned retry moves to when the new schedule has it, whichever former one has planned it. What a subscriber has put
// off comes no sooner. Asked again, a plan changes nothing.
func TestWhereAPlannedRetryMoves(t *testing.T) {
	t.Parallel()
	first := DefaultSchedule()
	second, third := first, first
	second.Factor, third.Factor = time.Minute, 10*time.Second
	u := (&Usual{Version: 1}).Replaced(second, first, false)
	u = u.Replaced(third, second, true)
	for name, c := range map[string]struct {
		tries      int
		wait, want time.Duration
	}{
		"by the first":         {1, 25 * time.Second, 10 * time.Second},
		"by the first, later":  {3, 400 * time.Second, 160 * time.Second},
		"by the second":        {2, 4 * time.Minute, 40 * time.Second},
		"as a store rounds":    {2, 4*time.Minute - 3*time.Microsecond, 40 * time.Second},
		"by the new one":       {2, 40 * time.Second, 40 * time.Second},
		"put off for longer":   {1, time.Hour, time.Hour},
		"put off for less":     {4, 300 * time.Second, 640 * time.Second},
		"past the end of both": {20, 52_000 * time.Second, 52_000 * time.Second},
	} {
		got := u.plan(Schedule{}, c.tries, c.wait)
		if got != c.want || u.plan(Schedule{}, c.tries, got) != got {
			t.Errorf("%s: %s, and then %s, want %s", name, got, u.plan(Schedule{}, c.tries, got), c.want)
		}
	}
	reset := u.Replaced(Schedule{}, third, true)
	reset.GivenUp = true
	if got := reset.plan(second, 1, 10*time.Second); got != time.Minute {
		t.Errorf("given up: %s, want as the node is configured", got)
	}
	for range 2 * mostFormer {
		u = u.Replaced(third, second, true)
	}
	if len(u.Former) != 2 {
		t.Errorf("it remembers %d schedules, want 2", len(u.Former))
	}
}
