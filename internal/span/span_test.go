package span_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-mq/holdfast/internal/span"
)

func TestParse(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"0": 0, "90s": 90 * time.Second, "7d": 7 * day, "1w2d": 9 * day, "1.5d": 36 * time.Hour, "1h30m": 90 * time.Minute, "-5m": -5 * time.Minute,
	} {
		if d, p := span.Parse(text); p != nil || d != want {
			t.Errorf("%q: got %s, %v; want %s", text, d, p, want)
		}
	}
	for text, what := range map[string]string{
		"": "is not a duration", "5": "has no unit", "5 m": `has the unknown unit " m"`, "5y": `has the unknown unit "y"`,
		"1.2.3s": "is not a duration", ".s": "is not a duration", "99999999d": "is longer than 292 years", "d": "is not a duration",
	} {
		if d, p := span.Parse(text); p == nil || p.What != what || p.Fix == "" {
			t.Errorf("%q: got %s, %v; want %q and a way out", text, d, p, what)
		}
	}
}

func TestFormatReadsBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := time.Duration(rapid.Int64Range(0, 1<<62).Draw(t, "d"))
		if got, p := span.Parse(span.Format(want)); p != nil || got != want {
			t.Fatalf("%s is written %s and read as %s, %v", want, span.Format(want), got, p)
		}
	})
}
