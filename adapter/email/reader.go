package email

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-mq/holdfast"
)

// reader collects the faults of settings. A fault never quotes a value that may be a secret.
type reader struct {
	secrets bool // secrets are available
	faults  []error
}

// fields are the keys of an object, each with the reader of its value.
type fields map[string]func(path string, raw json.RawMessage)

// fault reports what is wrong with a field. Only the first report about a field counts.
func (r *reader) fault(path, value, problem string) {
	field := "settings"
	if path != "" {
		field += "." + path
	}
	for _, told := range r.faults {
		if f, ok := errors.AsType[*holdfast.FieldError](told); ok && f.Field == field {
			return
		}
	}
	r.faults = append(r.faults, &holdfast.FieldError{Field: field, Value: clip(value, 80), Problem: problem})
}

// object passes the value of each key to its reader. An unknown key is a fault, and so is a
// duplicate key.
func (r *reader) object(path string, raw json.RawMessage, fields fields) {
	var all map[string]json.RawMessage
	if path == "" && len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	if !jsontext.Value(raw).IsValid() || json.Unmarshal(raw, &all) != nil || all == nil {
		r.fault(path, "", "must be a JSON object, in UTF-8, with each key once")
		return
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		at := clip(key, 64)
		if path != "" {
			at = path + "." + at
		}
		if read, ok := fields[key]; ok {
			read(at, all[key])
		} else {
			r.fault(at, "", "is not a setting here; the settings are "+strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
		}
	}
}

func (r *reader) part(inner fields) func(string, json.RawMessage) {
	return func(path string, raw json.RawMessage) { r.object(path, raw, inner) }
}

func read[T any](r *reader, to *T, kind string) func(string, json.RawMessage) {
	return func(path string, raw json.RawMessage) {
		var value *T
		if json.Unmarshal(raw, &value) != nil || value == nil {
			r.fault(path, "", "must be "+kind)
			return
		}
		*to = *value
	}
}

func (r *reader) text(to *string) func(string, json.RawMessage) { return read(r, to, "text") }

func (r *reader) truth(to *bool) func(string, json.RawMessage) { return read(r, to, "true or false") }

func (r *reader) number(to *int, most int) func(string, json.RawMessage) {
	return func(path string, raw json.RawMessage) {
		var n *int
		if json.Unmarshal(raw, &n) != nil || n == nil || *n < 1 || *n > most {
			r.fault(path, "", fmt.Sprintf("must be a whole number from 1 to %d", most))
			return
		}
		*to = *n
	}
}

func (r *reader) duration(to *time.Duration, most time.Duration) func(string, json.RawMessage) {
	return func(path string, raw json.RawMessage) {
		var text string
		if json.Unmarshal(raw, &text) == nil {
			if d, err := time.ParseDuration(text); err == nil && time.Second <= d && d <= most {
				*to = d
				return
			}
		}
		r.fault(path, text, fmt.Sprintf(`must be a time such as "30s", from 1s to %v`, most))
	}
}

// name reads a reference to a secret.
func (r *reader) name(to *string) func(string, json.RawMessage) {
	return func(path string, raw json.RawMessage) {
		var all map[string]string
		switch {
		case json.Unmarshal(raw, &all) != nil || len(all) != 1 || !isName(all["secret"]):
			r.fault(path, "", `must name a secret, as {"secret": "NAME"}, of 1 to 64 letters, digits, dots, - and _`)
		case !r.secrets:
			r.fault(path, "", "names a secret, but this node has no folder of secrets: set notifications.secrets")
		}
		*to = cmp.Or(all["secret"], "?") // report the fault only once
	}
}

func isName(s string) bool {
	return s != "" && len(s) <= 64 && s[0] != '.' && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
	})
}
