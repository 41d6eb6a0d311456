package fanout

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// In no period of Per do more than Count calls begin.
func TestARateIsKept(t *testing.T) {
	t.Parallel()
	var l limiter
	now := time.Unix(1_000_000, 0)
	var got []time.Duration
	for range 5 {
		got = append(got, l.take(Rate{Count: 2, Per: time.Minute}, now))
	}
	got = append(got, l.take(Rate{Count: 2, Per: time.Minute}, now.Add(10*time.Minute)), l.take(Rate{Count: 1, Per: time.Second}, now))
	if d := cmp.Diff(got, []time.Duration{0, 0, time.Minute, time.Minute, 2 * time.Minute, 0, 0}); d != "" {
		t.Errorf("(-got +want):\n%s", d)
	}
}
