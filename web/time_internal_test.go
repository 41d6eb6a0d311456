package web

import (
	"testing"
	"time"
)

// U28: clocks of two nodes that differ a little make no negative age, and a time to come is said to be one.
func TestAges(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-1500 * time.Millisecond: "now", -time.Millisecond: "now", 0: "now", 999 * time.Millisecond: "now", time.Second: "1 s ago", 59 * time.Second: "59 s ago",
		61 * time.Second: "1 min 1 s ago", 2 * time.Minute: "2 min ago", 59 * time.Minute: "59 min ago", 25 * time.Hour: "1 d 1 h ago", 400 * 24 * time.Hour: "400 d ago",
		-90 * time.Minute: "in 1 h 30 min", -5 * time.Second: "in 5 s",
	} {
		if got := ageOf(d); got != want {
			t.Errorf("%s: got %q, want %q", d, got, want)
		}
	}
}

func TestArgumentsAreQuoted(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{"order-42": "order-42", "a b": "'a b'", "": "''", "it's": `'it'\''s'`, "-x": "'-x'", "$(id)": "'$(id)'"} {
		if got := shellQuote(given); got != want {
			t.Errorf("%q: got %s, want %s", given, got, want)
		}
	}
}
