// Package shown makes foreign text fit to be shown in an error, a log line, a table or a terminal.
// All text from another machine that reaches people goes through it once, where it comes in.
package shown

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// cut marks shortened text.
const cut = "…"

// Clip returns the beginning of s, at most most bytes of whole characters, followed by a mark if s
// was longer. The mark is not counted. Clip does not change characters: it is for values that are
// quoted.
func Clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + cut
}

// Line returns s as one line of at most most bytes: valid UTF-8, with a space for each character
// that would act on a terminal, end the line, or change the direction of the text after it.
func Line(s string, most int) string {
	if len(s) > most+utf8.UTFMax { // skip the rest
		s = s[:most+utf8.UTFMax]
	}
	return Clip(strings.Map(func(r rune) rune {
		if Acts(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD")), most)
}

// Acts reports whether a character has an effect besides being seen: a control character, an end of
// a line or paragraph, or one that changes the direction of text, so that people would read
// something else than is there.
func Acts(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r)
}
