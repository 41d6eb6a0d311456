package chat

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// clean makes foreign text fit to be shown. It replaces invalid UTF-8 and control characters, and
// makes all line ends alike.
func clean(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r':
			return '\n'
		case unicode.IsControl(r) || isDirection(r):
			return ' '
		}
		return r
	}, s)
}

// isDirection reports whether a character changes the direction of the text after it, so that
// people would read something else than is there.
func isDirection(r rune) bool { return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 }

// line returns the cleaned text on one line.
func line(s string) string { return strings.Join(strings.Fields(clean(s)), " ") }

const ellipsis = "…"

// bytesOf is the cost of a character where a limit counts bytes.
func bytesOf(r rune) int { return utf8.RuneLen(r) }

// unitsOf is the cost of a character where a limit counts as JavaScript does.
func unitsOf(r rune) int {
	if r > 0xffff {
		return 2
	}
	return 1
}

// cut shortens text so that its characters cost at most most. It reports whether it shortened the
// text. The text is valid UTF-8.
func cut(s string, most int, cost func(rune) int) (string, bool) {
	room, end, sum := most-cost('…'), 0, 0
	for at, r := range s {
		c := cost(r)
		if sum += c; sum <= room {
			end = at + utf8.RuneLen(r)
		}
		if sum > most {
			return s[:end] + ellipsis, true
		}
	}
	return s, false
}

// clip shortens text for people to at most the given bytes.
func clip(s string, most int) string {
	s, _ = cut(line(s), most, bytesOf)
	return s
}

// fit returns the encoding of as much of text as the limit allows, and reports whether text was
// cut. The encoding must grow with the text.
func fit(text string, most int, encode func(text string) []byte) (encoded []byte, truncated bool) {
	if encoded = encode(text); len(encoded) <= most {
		return encoded, false
	}
	least, beyond := 0, len(text) // in bytes of text: the longest that fits, the shortest that does not
	best := encode(ellipsis)
	for beyond-least > 1 {
		middle := (least + beyond) / 2
		short, _ := cut(text, middle+len(ellipsis), bytesOf)
		if try := encode(short); len(try) <= most {
			least, best = middle, try
		} else {
			beyond = middle
		}
	}
	return best, true
}
