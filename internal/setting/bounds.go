package setting

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Between reports a time that is out of bounds.
func (r *Report) Between(path string, d, least, most time.Duration) {
	what := "is too short"
	switch {
	case d >= least && d <= most:
		return
	case d > most:
		what = "is too long"
	}
	r.Fault(path, FormatDuration(d), Problem{
		what, fmt.Sprintf("write a time from %s to %s", FormatDuration(least), FormatDuration(most)),
	})
}

// OneOf reports a word that is not among the known ones.
func OneOf[T ~string](r *Report, path string, word T, known ...T) {
	if slices.Contains(known, word) {
		return
	}
	words := make([]string, len(known))
	for i, k := range known {
		words[i] = string(k)
	}
	last := len(words) - 1
	p := Problem{What: "is not one of " + strings.Join(words[:last], ", ") + " and " + words[last]}
	if word == "" {
		p.What = "is empty; it is one of " + strings.Join(words[:last], ", ") + " and " + words[last]
	}
	if k, ok := Nearest(string(word), words); ok {
		p.Fix = fmt.Sprintf("did you mean %q?", k)
	}
	r.Fault(path, string(word), p)
}

func (r *Report) checkName(path, name string) {
	if p := NameProblem(name); p != nil {
		r.Fault(path, keyName(name), *p)
	}
}

// NameProblem checks that the library accepts a name in a message, and that the name can stand in the path of
// a URL. Nil: it is fine.
func NameProblem(s string) *Problem {
	fix := "use 1 to 128 printable ASCII characters without space and slash"
	switch {
	case s == "":
		return &Problem{"is empty", fix}
	case len(s) > maxName:
		return &Problem{fmt.Sprintf("has %d characters", len(s)), fix}
	case s == "." || s == "..":
		return &Problem{"has a meaning of its own in paths", "use another name"}
	}
	if i := strings.IndexFunc(s, func(c rune) bool { return c <= ' ' || c > '~' || c == '/' }); i >= 0 {
		c, _ := utf8.DecodeRuneInString(s[i:])
		return &Problem{fmt.Sprintf("holds the character %q", c), fix}
	}
	return nil
}

// checkPath refuses what no file system accepts and no log line should show.
func (r *Report) checkPath(path, file string) {
	if !utf8.ValidString(file) || strings.ContainsFunc(file, unicode.IsControl) {
		r.Fault(path, file, Problem{"holds a control character, or is not UTF-8", "use another name"})
	}
}

// CheckSecret checks a secret that no loader has read.
func (r *Report) CheckSecret(path string, s Secret) {
	if r.Bad[path] {
		return
	}
	if s.IsZero() {
		r.Fault(path, "", Problem{"is missing: messages are always signed", ReferenceFix})
	} else if p := shortSecret(s.Bytes()); p != nil {
		r.Fault(path, "", Problem{"cannot be used: " + p.What, p.Fix})
	}
}

// IsLoopback does not resolve names: the answer of today may change tomorrow.
func IsLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// NotShown is the problem of a value that was copied from a printed configuration.
var NotShown = Problem{"has " + Hidden + " in the place of what was not shown", "write the value itself"} //nolint:gochecknoglobals // a constant

// Wants reports a text that is missing.
func (r *Report) Wants(path, value string) {
	if value == "" {
		r.Fault(path, "", Problem{"is not set", "write it"})
	}
}

// WantsSecret reports a secret that is missing, unless that is reported already.
func (r *Report) WantsSecret(path string, s Secret) {
	if s.IsZero() && !r.Bad[path] {
		r.Fault(path, "", Problem{"is missing", passwordFix})
	}
}
