package web

import (
	"bytes"
	"fmt"
	"unicode"
	"unicode/utf8"
)

// harmless shows characters by their number that would change how a page is read: those that turn the
// direction of text, and controls. No template can forget it. In what a form sends back or a button copies, they
// stay what they are, as character references: a name that somebody only looked at must not become another one.
func harmless(page []byte) []byte {
	clean := true
	for i := 0; i < len(page) && clean; {
		r, size := utf8.DecodeRune(page[i:])
		clean, i = !acts(r), i+size
	}
	if clean {
		return page
	}
	out, at := make([]byte, 0, len(page)+64), cursor{}
	for len(page) > 0 {
		r, size := utf8.DecodeRune(page)
		switch {
		case !acts(r):
			at.pass(page)
			out = append(out, page[:size]...)
		case !at.sent():
			out = fmt.Appendf(out, "⟨U+%04X⟩", r)
		case r >= 0x7f && r < 0xa0: // a reference to it would be another character
			out = append(out, page[:size]...)
		default:
			out = fmt.Appendf(out, "&#x%X;", r)
		}
		page = page[size:]
	}
	return out
}

func acts(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' && r != '\n' && r != '\t' && r != '\r' || r == 0x7f
	}
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r)
}

// cursor is where in a page a character is. Templates escape text and put values between double quotes: a
// less-than sign begins a tag, and a quote within it begins or ends a value.
type cursor struct {
	tag, value bool
	kept       bool // the value is one that a form sends, or a button copies
	area       bool // a form sends the text
}

// sent reports whether what is here leaves the page again.
func (at *cursor) sent() bool { return at.value && at.kept || !at.tag && at.area }

// pass goes over the first byte of the rest of a page.
func (at *cursor) pass(rest []byte) {
	switch {
	case !at.tag && rest[0] == '<':
		at.tag, at.area = true, bytes.HasPrefix(rest, []byte("<textarea"))
	case !at.tag:
	case rest[0] == '"':
		at.value, at.kept = !at.value, at.kept && !at.value
	case at.value:
	case rest[0] == '>':
		at.tag = false
	case bytes.HasPrefix(rest, []byte(` value="`)), bytes.HasPrefix(rest, []byte(` data-copy="`)):
		at.kept = true
	}
}
