package email

import (
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-mq/holdfast/internal/secrets"
)

func isControl(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII })
}

// line returns foreign text on one line. Each run of control characters and invalid UTF-8 becomes
// one character.
func line(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	var b strings.Builder
	controls := false
	for _, r := range s {
		if isControl(r) {
			controls = true
			continue
		}
		if controls {
			b.WriteByte(' ') // the first is trimmed
		}
		controls = false
		b.WriteRune(r)
	}
	return strings.TrimSpace(b.String())
}

// clip shortens text for people to at most the given bytes, on one line.
func clip(s string, most int) string {
	if s = line(s); len(s) <= most {
		return s
	}
	end := most - len("…")
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// mostText is how many bytes of a server's text are kept.
const mostText = 2 << 10

// scrubber removes secrets from a server's text, in the forms in which they were sent to it (E56).
type scrubber struct{ secrets.Set }

// clean makes a server's text fit to be shown. Call it on the whole text: shortened text may end in
// the middle of a secret.
func (s *scrubber) clean(text string) string { return clip(s.Clean(text), mostText) }

// mostWait limits the wait that a server's text may ask for.
const mostWait = time.Hour

// asked returns the wait that the text of a reply asks for, as in "try again in 300 seconds" (E13).
// Zero: none.
func asked(text string) time.Duration {
	found := regexp.MustCompile(`(?i)\b(\d{1,6}) ?(s|sec|seconds?|m|min|minutes?|h|hours?)\b`).FindStringSubmatch(text)
	if found == nil {
		return 0
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		return 0
	}
	unit := time.Second
	switch found[2][0] | 0x20 {
	case 'm':
		unit = time.Minute
	case 'h':
		unit = time.Hour
	}
	return min(time.Duration(n)*unit, mostWait)
}
