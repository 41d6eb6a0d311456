package notify

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-mq/holdfast"
)

// HeaderPrefix is the beginning of the names of the product's own headers. Callers may not use it.
const HeaderPrefix = "hf-"

// Headers that say where a message comes from. They are not part of its identity: a repeat from
// another run of a script is the same message.
const (
	HeaderInstance        = "hf-instance"
	HeaderScript          = "hf-script"
	HeaderExecution       = "hf-execution"
	HeaderParentExecution = "hf-parent-execution"
	HeaderEnqueued        = "hf-enqueued" // RFC 3339, UTC
)

// UnknownSite is the source of messages of a node without a site id (SF-26).
const UnknownSite = "$unknown-site"

// MaxOriginLen is the longest text of an Origin, in bytes.
const MaxOriginLen = 256

// Headers returns the origin as headers of a message; the site is the message's source. The caller
// owns the map.
func (o Origin) Headers() map[string]string {
	h := map[string]string{}
	for name, value := range map[string]string{
		HeaderInstance: o.Instance, HeaderScript: o.Script, HeaderExecution: o.Execution, HeaderParentExecution: o.ParentExecution,
	} {
		if value != "" {
			h[name] = value
		}
	}
	holdfast.ParseTrace(o.Trace.Parent, o.Trace.State).Each(func(name, value string) { h[name] = value })
	if !o.Enqueued.IsZero() {
		h[HeaderEnqueued] = o.Enqueued.UTC().Format(time.RFC3339Nano)
	}
	return h
}

// OriginOf reads an origin, without its site, from the headers of a message that another node may
// have written. Text that is too long is cut. A time that is not valid is left out.
func OriginOf(h map[string]string) Origin {
	return Origin{
		Instance: cut(h[HeaderInstance]), Script: cut(h[HeaderScript]),
		Execution: cut(h[HeaderExecution]), ParentExecution: cut(h[HeaderParentExecution]),
		Trace:    holdfast.TraceOf(h),
		Enqueued: instant(h[HeaderEnqueued]),
	}
}

// Validate reports each text that a message cannot carry, under the names of the operator API.
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

// CheckHeaders refuses a caller's headers that use the product's own prefix.
func CheckHeaders(h map[string]string) error {
	for name := range h {
		if len(name) >= len(HeaderPrefix) && strings.EqualFold(name[:len(HeaderPrefix)], HeaderPrefix) {
			return fmt.Errorf("%w: %w", holdfast.ErrInvalid, &holdfast.FieldError{
				Field: "headers." + cut(name), Problem: "begins with " + HeaderPrefix + ", which is reserved for Holdfast; use another name",
			})
		}
	}
	return nil
}

// cut bounds a foreign text.
func cut(s string) string {
	if len(s) <= MaxOriginLen {
		return s
	}
	return strings.ToValidUTF8(s[:MaxOriginLen], "")
}

// instant reads a time. Another machine's clock may be wrong, but a time that a store could not
// keep is dropped.
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
