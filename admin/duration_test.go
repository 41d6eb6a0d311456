package admin_test

import (
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/admin"
)

func FuzzDuration(f *testing.F) {
	for _, s := range []string{"1w2d", "1.5h", "90s", "", ".", "1..5s", "9999999999999999999h", "106751d", "1d1", "-1s", "1µs", "0", "0s", "1e3s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, problem := admin.ParseDuration(s)
		if problem != "" {
			return
		}
		if d < 0 {
			t.Fatalf("%q: got %s, want none that is negative", s, d)
		}
		if back, problem := admin.ParseDuration(admin.FormatDuration(d)); problem != "" || back != d {
			t.Fatalf("%q: got %s, which is written %s and read as %s (%s)", s, d, admin.FormatDuration(d), back, problem)
		}
		if want, err := time.ParseDuration(s); err == nil && want != d {
			t.Fatalf("%q: got %s, want %s as Go reads it", s, d, want)
		}
	})
}
