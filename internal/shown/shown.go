// Package shown makes text that others wrote fit to be shown: in an error, a
// log line, a table, a terminal. Whatever comes from another machine and
// reaches people goes through it once, where it comes in.
package shown

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// cut marks a text that was shortened.
const cut = "…"

// Clip returns at most the given number of bytes of s, whole characters only,
// with a mark behind them if there was more. The mark comes on top. Clip
// leaves the characters as they are: it is for values that are quoted.
func Clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + cut
}

// Line returns s as one line of at most the given number of bytes: valid
// UTF-8, and a space for each character that would act on a terminal, end the
// line, or turn the order of what stands behind it.
func Line(s string, most int) string {
	if len(s) > most+utf8.UTFMax { // the rest is not looked at
		s = s[:most+utf8.UTFMax]
	}
	return Clip(strings.Map(func(r rune) rune {
		if Acts(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD")), most)
}

// Acts says whether a character does something other than be seen: a control
// character, an end of a line or paragraph, or one that turns the direction of
// text, so that people would read something else than what is there.
func Acts(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r)
}
