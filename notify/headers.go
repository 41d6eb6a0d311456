package notify

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-mq/holdfast"
)

// HeaderPrefix begins the names of headers that the product itself gives to a
// message. Callers may not use it.
const HeaderPrefix = "hf-"

// Where a message comes from, in its headers. They are not part of its
// identity: a repeat from another run of a script is the same message.
const (
	HeaderInstance        = "hf-instance"
	HeaderScript          = "hf-script"
	HeaderExecution       = "hf-execution"
	HeaderParentExecution = "hf-parent-execution"
	HeaderEnqueued        = "hf-enqueued" // RFC 3339, UTC
)

// UnknownSite is the source of messages of a node without a site id (SF-26).
const UnknownSite = "$unknown-site"

// MaxOriginLen is how many bytes each text of an Origin may have.
const MaxOriginLen = 256

// Headers are the origin's as a message carries them; the site is the message's
// source. The map is the caller's.
func (o Origin) Headers() map[string]string {
	h := map[string]string{}
	for name, value := range map[string]string{
		HeaderInstance: o.Instance, HeaderScript: o.Script, HeaderExecution: o.Execution, HeaderParentExecution: o.ParentExecution,
	} {
		if value != "" {
			h[name] = value
		}
	}
	if !o.Enqueued.IsZero() {
		h[HeaderEnqueued] = o.Enqueued.UTC().Format(time.RFC3339Nano)
	}
	return h
}

// OriginOf reads an origin, without its site, off the headers of a message that
// another node may have written: what is too long is cut, and an instant that
// cannot be one is left out.
func OriginOf(h map[string]string) Origin {
	return Origin{
		Instance: cut(h[HeaderInstance]), Script: cut(h[HeaderScript]),
		Execution: cut(h[HeaderExecution]), ParentExecution: cut(h[HeaderParentExecution]),
		Enqueued: instant(h[HeaderEnqueued]),
	}
}

// Validate reports each text that a message cannot carry, under the names that
// the operator API gives them.
func (o Origin) Validate() error {
	for _, f := range []struct{ name, value string }{
		{"originInstance", o.Instance}, {"sourceScript", o.Script}, {"executionId", o.Execution}, {"parentExecutionId", o.ParentExecution},
	} {
		if err := checkLine(f.name, f.value, MaxOriginLen); err != nil {
			return fmt.Errorf("%w: %w", holdfast.ErrInvalid, err)
		}
	}
	return nil
}

// CheckHeaders refuses headers of a caller that would be taken for the
// product's own.
func CheckHeaders(h map[string]string) error {
	for name := range h {
		if len(name) >= len(HeaderPrefix) && strings.EqualFold(name[:len(HeaderPrefix)], HeaderPrefix) {
			return fmt.Errorf("%w: %w", holdfast.ErrInvalid, &holdfast.FieldError{
				Field: "headers." + cut(name), Problem: "begins with " + HeaderPrefix + ", which is kept for the product's own; use another name",
			})
		}
	}
	return nil
}

// cut bounds a text that others wrote.
func cut(s string) string {
	if len(s) <= MaxOriginLen {
		return s
	}
	return strings.ToValidUTF8(s[:MaxOriginLen], "")
}

// instant reads a time that other machines may have set wrongly, but not so far
// off that a store could not keep it.
func instant(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || t.Year() < 2000 || t.Year() > 2200 {
		return time.Time{}
	}
	return t.UTC()
}

// checkLine accepts up to most bytes of UTF-8 without control characters.
func checkLine(field, s string, most int) error {
	switch {
	case len(s) > most:
		return &holdfast.FieldError{Field: field, Value: fmt.Sprint(len(s), " bytes"), Problem: fmt.Sprintf("is too long; at most %d bytes are kept", most)}
	case !utf8.ValidString(s), strings.ContainsFunc(s, isControl):
		return &holdfast.FieldError{Field: field, Value: fmt.Sprintf("%.80q", s), Problem: "holds a control character or is not UTF-8"}
	}
	return nil
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f || r == utf8.RuneError }
