package admin

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-mq/holdfast"
)

// causeOf names why messages to a destination are parked: those with the same name differ only in what mask
// hides.
func causeOf(destination, code, text string) string {
	sum := sha256.Sum256([]byte(destination + "\x00" + code + "\x00" + mask(text)))
	return hex.EncodeToString(sum[:8])
}

const (
	mostMasked = 300 // bytes of a masked error tell its cause
	mostRead   = 1000
)

// mask hides what differs between errors of one cause: quoted words, addresses, ids and numbers.
func mask(text string) string {
	cut := len(text) > mostRead
	text = strings.ToValidUTF8(text[:min(len(text), mostRead)], "")
	var m masker
	for text != "" && m.out.Len() < mostMasked {
		c, size := utf8.DecodeRuneInString(text)
		if unicode.IsSpace(c) {
			text = strings.TrimLeftFunc(text, unicode.IsSpace)
			if m.out.Len() > 0 && text != "" {
				m.out.WriteByte(' ')
			}
			continue
		}
		end := quoted(text, c, cut)
		switch key := c == '"' && end > 0 && strings.ContainsRune("{,", m.before) && strings.HasPrefix(text[end:], ":"); {
		case key && !strings.ContainsFunc(text[1:end-1], func(r rune) bool { return !idRune(r) }): // of JSON
			m.out.WriteByte('"')
			m.run(text[1 : end-1])
			m.out.WriteByte('"')
		case end > 0:
			m.out.WriteString("‹text›")
		default:
			end = size + wordEnd(text[size:], c)
			m.word(text[:end])
		}
		m.before, _ = utf8.DecodeLastRuneInString(text[:end])
		text = text[end:]
	}
	out := m.out.String()
	return strings.ToValidUTF8(out[:min(len(out), mostMasked)], "")
}

// wordEnd returns where a word ends, of which last is the rune before text.
func wordEnd(text string, last rune) int {
	for at, r := range text {
		if unicode.IsSpace(r) || strings.ContainsRune("\"`“«(),;{}", r) || r == '\'' && !idRune(last) {
			return at
		}
		last = r
	}
	return len(text)
}

// quoted returns where a quotation ends with which the text begins; 0: it begins with none. If the text was cut, a
// quotation may have lost its end.
func quoted(text string, open rune, cut bool) int {
	shut := map[rune]rune{'"': '"', '`': '`', '\'': '\'', '“': '”', '«': '»'}[open]
	if shut == 0 {
		return 0
	}
	begin := utf8.RuneLen(open)
	for at, r := range text[begin:] {
		end := begin + at + utf8.RuneLen(r)
		next, _ := utf8.DecodeRuneInString(text[end:])
		if r == shut && (shut != '\'' || end == len(text) || !unicode.IsLetter(next)) {
			return end
		}
	}
	if cut {
		return len(text)
	}
	return 0
}

// masker masks a text word by word.
type masker struct {
	out    strings.Builder
	before rune   // the last one that is no space
	name   string // the last letters, in lower case
}

// word masks a word without spaces.
func (m *masker) word(word string) {
	core := strings.TrimRight(word, ".:!?'")
	if isAddress(core) {
		m.out.WriteString("‹address›" + word[len(core):])
		return
	}
	for word != "" {
		end := strings.IndexFunc(word, func(r rune) bool { return !idRune(r) })
		if end < 0 {
			end = len(word)
		}
		if end == 0 {
			_, end = utf8.DecodeRuneInString(word)
			m.out.WriteString(word[:end])
		} else {
			m.run(word[:end])
		}
		word = word[end:]
	}
}

func idRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) || r == '-' || r == '_' }

// run masks letters and digits in a row.
func (m *masker) run(run string) {
	if _, is := holdfast.ID(run).UUID(); is {
		m.out.WriteString("‹id›")
		return
	}
	for part := range strings.FieldsFuncSeq(run, func(r rune) bool { return r == '-' || r == '_' }) {
		at := strings.Index(run, part)
		m.out.WriteString(run[:at])
		m.part(part)
		run = run[at+len(part):]
	}
	m.out.WriteString(run)
}

// part masks letters and digits: an id, or a word with numbers in it. The number of a code stays.
func (m *masker) part(part string) {
	digits, hex, turns, was := 0, true, 0, false
	for at, r := range part {
		is := unicode.IsNumber(r)
		if is {
			digits++
		}
		if at > 0 && is != was {
			turns++
		}
		hex, was = hex && strings.ContainsRune("0123456789abcdefABCDEF", r), is
	}
	switch {
	case digits == 0:
		m.out.WriteString(part)
		m.name = strings.ToLower(part)
	case turns == 0 && len(part) >= 3 && len(part) <= 5 && namesCode(m.name):
		m.out.WriteString(part)
	case turns > 0 && len(part) >= 8 && (hex || turns > 2):
		m.out.WriteString("‹id›")
	default:
		was := false
		for _, r := range part {
			is := unicode.IsNumber(r)
			switch {
			case !is:
				m.out.WriteRune(r)
			case !was:
				m.out.WriteString("‹n›")
			}
			was = is
		}
	}
}

// namesCode reports whether the number after a word tells what has failed.
func namesCode(name string) bool {
	switch name {
	case "sqlstate", "status", "code", "errno":
		return true
	}
	return false
}

// isAddress reports whether a word is a URL, an e-mail address, or an address of the network.
func isAddress(word string) bool {
	if strings.Contains(word, "://") {
		return true
	}
	if before, after, found := strings.Cut(word, "@"); found && before != "" && after != "" {
		return true
	}
	if _, err := netip.ParseAddrPort(word); err == nil {
		return true
	}
	_, err := netip.ParseAddr(word)
	return err == nil
}
