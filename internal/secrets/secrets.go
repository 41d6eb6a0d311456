// Package secrets takes our own credentials out of text that others wrote and
// people are shown: servers quote what they refuse. It promises that a secret
// is found in the forms in which it was sent or is usually quoted, and so is
// each piece of it of 16 bytes or more. Text is scrubbed as a whole first and
// cut then: what is cut first may hold half a secret.
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
	// piece is the length from which a part of a secret is hidden, too.
	piece = 16
	// short is the length below which a secret is hidden only where it stands
	// alone: it would blot out half of what is said.
	short = 4
	// Mark stands for what was taken out.
	Mark = "[secret]"
)

// Set is what must not be shown. Its zero value hides nothing. It must not be
// added to while it is used.
type Set struct {
	forms []string // of which each piece is hidden, too
	whole []string
}

// Add hides secrets; empty ones are none.
func (s *Set) Add(secrets ...string) {
	for _, secret := range secrets {
		if secret == "" {
			continue
		}
		s.add(secret)
		for skip := range min(3, len(secret)) { // what is sent before it shifts the encoding
			if skip > 0 && len(secret) < piece {
				break // little is left of it
			}
			s.add(base64.RawStdEncoding.EncodeToString([]byte(secret[skip:])))
			s.add(base64.RawURLEncoding.EncodeToString([]byte(secret[skip:])))
		}
	}
}

// AddWhole hides texts of which only the whole is secret, as of a URL whose host
// everybody may know.
func (s *Set) AddWhole(texts ...string) {
	for _, text := range texts {
		if text != "" && !slices.Contains(s.whole, text) {
			s.whole = append(s.whole, text)
		}
	}
}

// AddBasic hides a password, alone and with its user as RFC 7617 sends it.
func (s *Set) AddBasic(user, password string) {
	if password != "" {
		s.Add(password, user+":"+password)
	}
}

// AddHeader hides the value of a header, and what stands in it behind a scheme
// or a name, as in "Token abc" or "session=abc".
func (s *Set) AddHeader(value string) {
	s.Add(value)
	for _, part := range strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(" ;,=", r) }) {
		if len(part) >= 2*short {
			s.Add(part)
		}
	}
}

// AddURL hides the password of a URL, and the values of its query that are as
// long as keys are or whose names say that they are secret. Text that is no
// URL has none.
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

// AddHeaders hides the values of those headers that may carry credentials, if
// they are as long as keys are or their names say that they are secret.
func (s *Set) AddHeaders(all http.Header) {
	for name, values := range all {
		for _, value := range values {
			if !Plain(name) && (len(value) >= piece || Names(name)) {
				s.AddHeader(value)
			}
		}
	}
}

// Names says whether the name of a header or of a value in a query is one
// under which secrets are sent.
func Names(name string) bool {
	return regexp.MustCompile(`(?i)auth|cookie|key|token|secret|pass|pwd|^pin$|sig|^code$|credential`).MatchString(name)
}

// add notes text as it is, and as it stands in URLs, in JSON, in HTML and
// between quotes; and each of these between the quotes that errors put around
// what they show.
func (s *Set) add(text string) {
	if !strings.ContainsFunc(text, escaped) { // then all of these are one
		s.note(text)
		return
	}
	plain := strconv.Quote(text)
	ascii := strconv.QuoteToASCII(text)
	inJSON, _ := json.Marshal(text) // text has an encoding
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

// escaped says that a character is written otherwise somewhere: that it is none of
// those which RFC 3986 leaves unreserved, and which quotes, JSON and HTML leave alone.
func escaped(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.~", r)
}

// lowerHex is a text of a URL as others write it: %2f in place of %2F.
func lowerHex(text string) string {
	b := []byte(text)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i:], strings.ToLower(text[i:i+3]))
		}
	}
	return string(b)
}

// Longest is the length of the longest form: who reads the beginning of a text
// reads so much more than is shown, and gives it to CleanStart.
func (s *Set) Longest() int {
	longest := 0
	for _, form := range slices.Concat(s.forms, s.whole) {
		longest = max(longest, len(form))
	}
	return longest
}

// CleanStart is Clean for the beginning of a longer text: its end may be half
// a secret, and is left out.
func (s *Set) CleanStart(text string) string {
	text = s.Clean(text)
	text = text[:max(len(text)-s.Longest(), 0)]
	for range utf8.UTFMax - 1 { // a character that was cut
		if r, size := utf8.DecodeLastRuneInString(text); r != utf8.RuneError || size != 1 {
			break
		}
		text = text[:len(text)-1]
	}
	return text
}

// Clean returns text without the secrets.
func (s *Set) Clean(text string) string {
	var hidden []bool // by byte; nil: none yet
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

// pieces calls found for what a text and a form have in common, where that is
// long enough: then it holds one of the blocks of half that length which the
// text is divided into, so that only these are looked up.
func pieces(text, form string, found func(from, to int)) {
	const block = piece / 2
	for at := 0; at+block <= len(text); at += block {
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
			}
		})
	}
}

// each calls found wherever a part stands in a text.
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

// replaced puts one mark for each run of hidden bytes. A character of which a
// part is hidden is hidden.
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

// alone says that no letter or digit stands beside a part of a text.
func alone(text string, from, to int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:from])
	after, _ := utf8.DecodeRuneInString(text[to:])
	return !isWord(before) && !isWord(after)
}

func isWord(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// Error is err with a text without the secrets. What it wraps is still found
// by type.
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
