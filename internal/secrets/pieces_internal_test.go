package secrets

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// Each part of at least piece bytes that a text has in common with a secret is found, also where letters repeat.
func TestPiecesAreAllFound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("ab")), 0, 120, -1).Draw(t, "text")
		form := rapid.StringOfN(rapid.RuneFrom([]rune("ab")), piece+1, 80, -1).Draw(t, "form")
		if rapid.Bool().Draw(t, "quoted") {
			text += form[len(form)/3:] + text
		}
		got, want := make([]bool, len(text)), make([]bool, len(text))
		mark := func(in []bool, from, to int) {
			for i := from; i < to; i++ {
				in[i] = true
			}
		}
		pieces(text, form, func(from, to int) { mark(got, from, to) })
		for i := 0; i+piece <= len(text); i++ {
			if strings.Contains(form, text[i:i+piece]) {
				mark(want, i, i+piece)
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	})
}

// A text of one letter is no work for minutes: a subscriber may choose both.
func TestATextOfOneLetter(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "one goroutine")
	s := &Set{}
	s.Add(strings.Repeat("a", 8000))
	if got := s.Clean(strings.Repeat("a", 16<<10)); got != Mark {
		t.Errorf("got %.40s", got)
	}
}
