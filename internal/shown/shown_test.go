package shown_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/holdfast-mq/holdfast/internal/shown"
)

func TestTextIsShortenedAtWholeCharacters(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		s    string
		most int
		want string
	}{
		"short":            {"abc", 3, "abc"},
		"long":             {"abcd", 3, "abc…"},
		"inside a letter":  {"abü", 3, "ab…"},
		"nothing is left":  {"ü", 1, "…"},
		"controls are not": {"a\x1b[2Jb", 5, "a\x1b[2J…"},
	} {
		if got := shown.Clip(c.s, c.most); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// F1-12: what another machine says does not act on an operator's terminal.
func TestALineDoesNothingButBeSeen(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"plain ü":                  "plain ü",
		"\x1b[2Jgone":              " [2Jgone",
		"one\r\ntwo\u2028three":    "one  two three",
		"C1 \u009b31m":             "C1  31m",
		"\u202ereversed\u2066 x":   " reversed  x",
		"not UTF-8 \xff\xfe":       "not UTF-8 \uFFFD",
		strings.Repeat("a", 300):   strings.Repeat("a", 40) + "…",
		strings.Repeat("ü", 1<<20): strings.Repeat("ü", 20) + "…",
	} {
		got := shown.Line(s, 40)
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if strings.ContainsFunc(got, shown.Acts) || !utf8.ValidString(got) {
			t.Errorf("%q acts", got)
		}
	}
}
