package admin

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"
)

// causeOf names why messages to a destination are parked: those with the same name differ only in what mask
// hides.
func causeOf(destination, code, text string) string {
	sum := sha256.Sum256([]byte(destination + "\x00" + code + "\x00" + mask(text)))
	return hex.EncodeToString(sum[:8])
}

// mostMasked is how many bytes of an error tell its cause.
const mostMasked = 300

// mask hides what differs between errors of one cause: quoted words, addresses, ids and numbers.
func mask(text string) string {
	text = strings.ToValidUTF8(text[:min(len(text), mostMasked)], "")
	var b strings.Builder
	for text != "" {
		c, size := utf8.DecodeRuneInString(text)
		if unicode.IsSpace(c) {
			text = strings.TrimLeftFunc(text, unicode.IsSpace)
			if b.Len() > 0 && text != "" {
				b.WriteByte(' ')
			}
			continue
		}
		if end := quoted(text, c); end > 0 {
			b.WriteString("‹text›")
			text = text[end:]
			continue
		}
		end := size + strings.IndexFunc(text[size:]+" ", func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("\"`“«(),;{}", r) })
		b.WriteString(maskWord(text[:end]))
		text = text[end:]
	}
	return b.String()
}

// quoted returns where a quotation ends with which the text begins; 0: it begins with none.
func quoted(text string, open rune) int {
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
	return 0
}

// maskWord masks a word without spaces.
func maskWord(word string) string {
	core := strings.TrimRight(word, ".:!?'")
	rest := word[len(core):]
	if isAddress(core) {
		return "‹address›" + rest
	}
	var b strings.Builder
	for core != "" {
		end := strings.IndexFunc(core, func(r rune) bool { return !idRune(r) })
		if end < 0 {
			end = len(core)
		}
		if end == 0 {
			_, end = utf8.DecodeRuneInString(core)
			b.WriteString(core[:end])
		} else {
			b.WriteString(maskRun(core[:end]))
		}
		core = core[end:]
	}
	return b.String() + rest
}

func idRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) || r == '-' || r == '_' }

// maskRun masks letters and digits in a row: an id, or a word with numbers in it.
func maskRun(run string) string {
	digits := 0
	for _, r := range run {
		if unicode.IsNumber(r) {
			digits++
		}
	}
	switch {
	case digits == 0:
		return run
	case digits < len(run) && len(run) >= 8:
		return "‹id›"
	}
	var b strings.Builder
	was := false
	for _, r := range run {
		is := unicode.IsNumber(r)
		switch {
		case !is:
			b.WriteRune(r)
		case !was:
			b.WriteString("‹n›")
		}
		was = is
	}
	return b.String()
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
