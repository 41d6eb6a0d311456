package brief_test

import (
	"fmt"
	"testing"

	"github.com/holdfast-mq/holdfast/internal/brief"
)

// F1-57: a hundred thousand names are a few, and a number.
func TestALongListIsAFewNamesAndANumber(t *testing.T) {
	t.Parallel()
	names := make([]string, 100_000)
	for i := range names {
		names[i] = fmt.Sprintf("d%d", i)
	}
	for want, n := range map[string]int{
		"": 0, "d0": 1, "d0, d1, d2, d3, d4, d5, d6, d7, d8, d9": 10,
		"d0, d1, d2, d3, d4, d5, d6, d7, d8, d9, and 1 more":     11,
		"d0, d1, d2, d3, d4, d5, d6, d7, d8, d9, and 99990 more": 100_000,
	} {
		if got := brief.List(names[:n]); got != want {
			t.Errorf("%d names: got %q, want %q", n, got, want)
		}
	}
	if got, want := brief.Join(names[:4], "; ", 2), "d0; d1; and 2 more"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// F1-89: one is no plural.
func TestOneIsNoPlural(t *testing.T) {
	t.Parallel()
	for n, want := range []string{"0 messages are held", "1 message is held", "2 messages are held"} {
		if got := brief.Count(n, "message is held", "messages are held"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
