// Package secrets removes our own credentials from foreign text that people see: servers quote what
// they refuse. It finds a secret in the forms in which it was sent or is usually quoted, and each
// piece of it of 16 bytes or more. Clean a text as a whole before you cut it: a cut text may hold
// half a secret.
package secrets

import (
	"encoding/base64"
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// piece is the length from which a part of a secret is also hidden.
	piece = 16
	// short is the length below which a secret is hidden only where it stands alone: otherwise it
	// would hide half of every text.
	short = 4
	// Mark replaces what was removed.
	Mark = "[secret]"
)

// Set is a set of texts that must not be shown. The zero value hides nothing. It must not be
// extended while it is in use.
type Set struct {
	forms []string // pieces of these are hidden too
	whole []string
}

// Add hides secrets. It ignores empty ones.
func (s *Set) Add(secrets ...string) {
	for _, secret := range secrets {
		if secret == "" {
			continue
		}
		s.add(secret)
		for skip := range min(3, len(secret)) { // the text sent before it shifts its base64 form
			if skip > 0 && len(secret) < piece {
				break // too little is left
			}
			s.add(base64.RawStdEncoding.EncodeToString([]byte(secret[skip:])))
			s.add(base64.RawURLEncoding.EncodeToString([]byte(secret[skip:])))
		}
	}
}

// AddWhole hides texts only as a whole, such as a URL whose host may be shown.
func (s *Set) AddWhole(texts ...string) {
	for _, text := range texts {
		if text != "" && !slices.Contains(s.whole, text) {
			s.whole = append(s.whole, text)
		}
	}
}

// AddBasic hides a password, alone and together with its user in the form of RFC 7617.
func (s *Set) AddBasic(user, password string) {
	if password != "" {
		s.Add(password, user+":"+password)
	}
}

// AddHeader hides the value of a header, and the part of it after a scheme or a name, as in "Token
// abc" or "session=abc".
func (s *Set) AddHeader(value string) {
	s.Add(value)
	for _, part := range strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(" ;,=", r) }) {
		if len(part) >= 2*short {
			s.Add(part)
		}
	}
}

// AddURL hides the password of a URL, and values of its query that are as long as keys, or whose
// names denote a secret. It ignores a text that is no URL.
func (s *Set) AddURL(text string) {
	u, err := url.Parse(text)
	if err != nil {
		return
	}
	if password, ok := u.User.Password(); ok {
		s.AddBasic(u.User.Username(), password)
	}
	for name, values := range u.Query() {
		for _, value := range values {
			if len(value) >= piece || Names(name) {
				s.Add(value)
			}
		}
	}
}

// AddHeaders hides the values of headers that may carry credentials, if they are as long as keys or
// their names denote a secret.
func (s *Set) AddHeaders(all http.Header) {
	for name, values := range all {
		for _, value := range values {
			if !Plain(name) && (len(value) >= piece || Names(name)) {
				s.AddHeader(value)
			}
		}
	}
}

// Names reports whether a header or a query value with this name usually carries a secret.
func Names(name string) bool {
	return regexp.MustCompile(`(?i)auth|cookie|key|token|secret|pass|pwd|^pin$|sig|^code$|credential`).MatchString(name)
}

// add notes a text plain and as it appears in URLs, in JSON, in HTML and between quotes; and each
// of these between the quotes that errors add.
func (s *Set) add(text string) {
	if !strings.ContainsFunc(text, escaped) { // then all forms are the same
		s.note(text)
		return
	}
	plain := strconv.Quote(text)
	ascii := strconv.QuoteToASCII(text)
	inJSON, _ := json.Marshal(text) // cannot fail: text is a string
	quoted := string(inJSON[1 : len(inJSON)-1])
	forms := []string{
		text, url.QueryEscape(text), url.PathEscape(text), lowerHex(url.QueryEscape(text)), lowerHex(url.PathEscape(text)), url.UserPassword("", text).String()[1:],
		plain[1 : len(plain)-1], ascii[1 : len(ascii)-1], quoted, strings.ReplaceAll(quoted, "/", `\/`), html.EscapeString(text),
	}
	for i, form := range forms {
		if slices.Contains(forms[:i], form) {
			continue
		}
		again := strconv.Quote(form)
		s.note(form)
		s.note(again[1 : len(again)-1])
	}
}

func (s *Set) note(form string) {
	if !slices.Contains(s.forms, form) {
		s.forms = append(s.forms, form)
	}
}

// escaped reports whether some form writes a character differently: it is not one that RFC 3986
// leaves unreserved and that quotes, JSON and HTML leave alone.
func escaped(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.~", r)
}

// lowerHex returns URL text with lower-case escapes: %2f instead of %2F.
func lowerHex(text string) string {
	b := []byte(text)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i:], strings.ToLower(text[i:i+3]))
		}
	}
	return string(b)
}

// Longest returns the length of the longest form. A caller that shows the beginning of a text reads
// that much more than it shows, and passes it to CleanStart.
func (s *Set) Longest() int {
	longest := 0
	for _, form := range slices.Concat(s.forms, s.whole) {
		longest = max(longest, len(form))
	}
	return longest
}

// CleanStart is Clean for the beginning of a longer text. It drops the end, which may be half a
// secret.
func (s *Set) CleanStart(text string) string {
	text = s.Clean(text)
	text = text[:max(len(text)-s.Longest(), 0)]
	for range utf8.UTFMax - 1 { // drop a character that was cut
		if r, size := utf8.DecodeLastRuneInString(text); r != utf8.RuneError || size != 1 {
			break
		}
		text = text[:len(text)-1]
	}
	return text
}

// Clean returns text without the secrets.
func (s *Set) Clean(text string) string {
	var hidden []bool // by byte; nil: nothing hidden yet
	hide := func(from, to int) {
		if hidden == nil {
			hidden = make([]bool, len(text)+1)
		}
		for i := from; i < to; i++ {
			hidden[i] = true
		}
	}
	for _, form := range s.forms {
		if len(form) > piece {
			pieces(text, form, hide)
			continue
		}
		each(text, form, func(from, to int) {
			if len(form) >= short || alone(text, from, to) {
				hide(from, to)
			}
		})
	}
	for _, whole := range s.whole {
		each(text, whole, hide)
	}
	if hidden == nil {
		return text
	}
	return replaced(text, hidden)
}

// pieces calls found for each long enough part that a text and a form have in common. Such a part
// contains one of the blocks of half that length into which the text is divided, so only these are
// looked up. A block that lies in a part that was found, with another block behind it, is left out: whatever
// contains it also contains the block that has found that part, or the last one in it. So a text of one
// letter is no work for minutes.
func pieces(text, form string, found func(from, to int)) {
	const block = piece / 2
	reach := 0
	for at := 0; at+block <= len(text); at += block {
		if reach >= at+piece {
			continue
		}
		each(form, text[at:at+block], func(in, end int) {
			from, to := at, at+block
			for from > 0 && in > 0 && text[from-1] == form[in-1] {
				from, in = from-1, in-1
			}
			for to < len(text) && end < len(form) && text[to] == form[end] {
				to, end = to+1, end+1
			}
			if to-from >= piece {
				found(from, to)
				reach = max(reach, to)
			}
		})
	}
}

// each calls found for each occurrence of a part in a text.
func each(text, part string, found func(from, to int)) {
	for from := 0; ; {
		at := strings.Index(text[from:], part)
		if at < 0 {
			return
		}
		found(from+at, from+at+len(part))
		from += at + 1
	}
}

// replaced puts one mark in place of each run of hidden bytes. If part of a character is hidden,
// all of it is.
func replaced(text string, hidden []bool) string {
	var b strings.Builder
	in := false
	for at := 0; at < len(text); {
		_, size := utf8.DecodeRuneInString(text[at:])
		now := slices.Contains(hidden[at:at+size], true)
		switch {
		case !now:
			b.WriteString(text[at : at+size])
		case !in:
			b.WriteString(Mark)
		}
		in = now
		at += size
	}
	return b.String()
}

// alone reports that no letter or digit is next to a part of a text.
func alone(text string, from, to int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:from])
	after, _ := utf8.DecodeRuneInString(text[to:])
	return !isWord(before) && !isWord(after)
}

func isWord(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// Error returns err with a text without the secrets. errors.Is and errors.As still see what it
// wraps.
func (s *Set) Error(err error) error {
	if err == nil {
		return nil
	}
	was := err.Error()
	if text := s.Clean(was); text != was {
		return &cleaned{text, err}
	}
	return err
}

type cleaned struct {
	text string
	err  error
}

func (c *cleaned) Error() string { return c.text }
func (c *cleaned) Unwrap() error { return c.err }
