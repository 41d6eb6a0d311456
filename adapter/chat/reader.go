package chat

import (
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
	bad     map[string]bool // paths that have a fault already, and their parents
}

func (r *reader) fault(path, value, problem string) {
	if r.bad == nil {
		r.bad = map[string]bool{}
	}
	for at := path; at != ""; at = at[:max(strings.LastIndexAny(at, ".["), 0)] {
		r.bad[at] = true
	}
	field := "settings"
	if path != "" {
		field += "." + path
	}
	r.faults = append(r.faults, &holdfast.FieldError{Field: field, Value: value, Problem: problem})
}

// entries returns the members of an object.
func (r *reader) entries(path string, raw json.RawMessage) (map[string]json.RawMessage, bool) {
	var all map[string]json.RawMessage
	if !jsontext.Value(raw).IsValid() || json.Unmarshal(raw, &all) != nil {
		r.fault(path, "", "must be a JSON object, in UTF-8, with each key once")
		return nil, false
	}
	return all, true
}

// object passes the value of each key to its reader.
func (r *reader) object(path string, raw json.RawMessage, fields map[string]func(path string, raw json.RawMessage)) {
	if path == "" && len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	all, _ := r.entries(path, raw)
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

func (r *reader) texts(to *[]string) func(string, json.RawMessage) {
	return read(r, to, "a list of texts")
}

func (r *reader) duration(to *time.Duration) func(string, json.RawMessage) {
	return func(path string, raw json.RawMessage) {
		var text string
		err := json.Unmarshal(raw, &text)
		if err == nil {
			*to, err = time.ParseDuration(text)
		}
		if err != nil {
			*to = defaultTimeout
			r.fault(path, clip(text, 40), `must be a time such as "30s"`)
		}
	}
}

func (r *reader) number(to **int, least, most int) func(string, json.RawMessage) {
	return func(path string, raw json.RawMessage) {
		var n *int
		if json.Unmarshal(raw, &n) != nil || n == nil || *n < least || *n > most {
			r.fault(path, "", fmt.Sprintf("must be a whole number from %d to %d", least, most))
			return
		}
		*to = n
	}
}

// name reads a reference to a secret.
func (r *reader) name(to *string) func(string, json.RawMessage) {
	return func(path string, raw json.RawMessage) {
		name, err := r.reference(raw)
		if err != nil {
			r.fault(path, "", err.Error())
		}
		*to = name
	}
}

func (r *reader) names(to *[]string) func(string, json.RawMessage) {
	return func(path string, raw json.RawMessage) {
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil || len(list) == 0 || len(list) > mostSigning {
			r.fault(path, "", fmt.Sprintf(`must be a list of 1 to %d secrets, each named as {"secret": "NAME"}`, mostSigning))
			return
		}
		for i, one := range list {
			name, err := r.reference(one)
			if err != nil {
				r.fault(fmt.Sprintf("%s[%d]", path, i), "", err.Error())
			}
			*to = append(*to, name)
		}
	}
}

// address reads a URL, or a reference to one.
func (r *reader) address(p *place, kind string) func(string, json.RawMessage) {
	return func(path string, raw json.RawMessage) {
		if json.Unmarshal(raw, &p.url) == nil && p.url != "" {
			if kind == teams || kind == slack {
				p.url = ""
				r.fault(path, "", `is a secret: anybody who has it can post. Put it into a secret and name that, as {"secret": "NAME"}`)
			}
			return
		}
		name, err := r.reference(raw)
		if err != nil {
			r.fault(path, "", err.Error()+"; a URL that is not a secret may be given as text")
		}
		p.url, p.urlSecret = "", name
	}
}

func (r *reader) reference(raw json.RawMessage) (string, error) {
	var all map[string]string
	if json.Unmarshal(raw, &all) != nil || len(all) != 1 || !isName(all["secret"]) || strings.HasPrefix(all["secret"], ".") {
		return "", errors.New(`must name a secret, as {"secret": "NAME"}, of 1 to 64 letters, digits, dots, - and _`)
	}
	if !r.secrets {
		return "", errors.New("names a secret, but this node has no folder of secrets: set notifications.secrets")
	}
	return all["secret"], nil
}
