package setting_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-mq/holdfast/internal/setting"
)

func TestDurationsAreGosWithDaysAndWeeks(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"0": 0, "0s": 0, "500ms": 500 * time.Millisecond, "1h30m": 90 * time.Minute, "7d": 7 * 24 * time.Hour,
		"1w": 7 * 24 * time.Hour, "1w2d3h": (9*24 + 3) * time.Hour, "1.5d": 36 * time.Hour, ".5s": 500 * time.Millisecond,
		"-2d": -48 * time.Hour, "1us": time.Microsecond, "1µs": time.Microsecond, "106751d": 106751 * 24 * time.Hour,
	} {
		if got, err := setting.ParseDuration(text); err != nil || got != want {
			t.Errorf("parse %q: got %v, error %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "-", "7", "d", "7 d", "7D", "7days", "1.2.3h", ".h", "1e3s", "+1s", "--1s", "1h-1m", "106752d", "20000w", "99999999999999999999h",
		"2562047h2562047h", "seven", "1d ", "٣s",
	} {
		if got, err := setting.ParseDuration(text); err == nil {
			t.Errorf("parse %q: got %v, want an error", text, got)
		}
	}
}

func TestDurationsReadBack(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", 24 * time.Hour: "24h", 48 * time.Hour: "2d", 7 * 24 * time.Hour: "7d", 5 * time.Minute: "5m",
		90 * time.Second: "1m30s", 36 * time.Hour: "36h", 100 * time.Minute: "1h40m", 10 * time.Second: "10s",
	} {
		if got := setting.FormatDuration(d); got != want {
			t.Errorf("format %d: got %q, want %q", d, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]time.Duration{1, time.Second, time.Minute, time.Hour, 24 * time.Hour}).Draw(t, "unit")
		d := time.Duration(rapid.Int64Range(0, 100_000).Draw(t, "n")) * unit
		if got, err := setting.ParseDuration(setting.FormatDuration(d)); err != nil || got != d {
			t.Fatalf("%q: got %v, error %v, want %v", setting.FormatDuration(d), got, err, d)
		}
	})
}

func TestSizesHaveUnits(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"0B": 0, "17B": 17, "1KB": 1000, "1KiB": 1024, "1MiB": 1 << 20, "1 MiB": 1 << 20, "2MB": 2_000_000, "1GiB": 1 << 30, "3GB": 3_000_000_000,
	} {
		if got, err := setting.ParseSize(text); err != nil || got != want {
			t.Errorf("parse %q: got %v, error %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "1", "MiB", "1.5MiB", "1mib", "1M", "1 MiB ", "-1MiB", "9223372036854775807KiB", "99999999999999999999B"} {
		if got, err := setting.ParseSize(text); err == nil {
			t.Errorf("parse %q: got %v, want an error", text, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]int64{1, 1000, 1 << 10, 1 << 20, 1_000_000}).Draw(t, "unit")
		n := rapid.Int64Range(0, 1_000_000).Draw(t, "n") * unit
		if got, err := setting.ParseSize(setting.FormatSize(n)); err != nil || got != n {
			t.Fatalf("%q: got %v, error %v, want %v", setting.FormatSize(n), got, err, n)
		}
	})
}
