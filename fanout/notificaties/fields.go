package notificaties

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"
)

// fields reads the members of one object, and collects what is wrong with them.
type fields struct {
	at     string // of the object, such as "kanalen.0."; empty: the body
	all    map[string]any
	faults *[]InvalidParam
}

// object begins with a body.
func object(v any) (*fields, error) {
	all, ok := v.(map[string]any)
	if !ok {
		return nil, invalid(InvalidParam{whole, "invalid", "Ongeldige data: er wordt een object verwacht."})
	}
	return &fields{all: all, faults: &[]InvalidParam{}}, nil
}

// mostFaults is how many faults one answer names.
const mostFaults = 50

func (f *fields) fault(name, code, reason string) {
	if len(*f.faults) < mostFaults {
		*f.faults = append(*f.faults, InvalidParam{f.at + clip(name), code, reason})
	}
}

// err returns the faults, if there are any.
func (f *fields) err() error { return invalid(*f.faults...) }

// given returns a member that is there. Null is a fault, and so is a required member that is absent.
func (f *fields) given(name string, required bool) (v any, ok bool) {
	switch v, ok = f.all[name]; {
	case !ok && required:
		f.fault(name, "required", "Dit veld is vereist.")
	case ok && v == nil:
		f.fault(name, "null", "Dit veld mag niet leeg zijn.")
		return nil, false
	}
	return v, ok
}

// textRules say what a text may be. Sizes are in characters; zero: no bound.
type textRules struct {
	required, blank bool
	most            int
}

// text reads a text without the space around it. A number is taken as it is written.
func (f *fields) text(name string, rules textRules) (s string, ok bool) {
	v, ok := f.given(name, rules.required)
	if !ok {
		return "", false
	}
	return f.scalar(name, v, rules)
}

// scalar checks a value that is to be a text.
func (f *fields) scalar(name string, v any, rules textRules) (string, bool) {
	s, ok := v.(string)
	if n, is := v.(json.Number); is {
		s, ok = n.String(), true
	}
	s = strings.TrimSpace(s)
	switch {
	case !ok:
		f.fault(name, "invalid", "Geen geldige tekst.")
	case s == "" && !rules.blank:
		f.fault(name, "blank", "Dit veld mag niet leeg zijn.")
	case strings.ContainsRune(s, 0):
		f.fault(name, "null_characters_not_allowed", "Null-tekens zijn niet toegestaan.")
	case rules.most > 0 && utf8.RuneCountInString(s) > rules.most:
		f.fault(name, "max_length", fmt.Sprintf("Zorg ervoor dat dit veld niet meer dan %d karakters bevat.", rules.most))
	default:
		return s, true
	}
	return "", false
}

// link reads an absolute http or https URL.
func (f *fields) link(name string, rules textRules) (string, bool) {
	s, ok := f.text(name, rules)
	if !ok || s == "" {
		return s, ok
	}
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		f.fault(name, "invalid", "Voer een geldige URL in, zonder gebruiker en wachtwoord.")
		return "", false
	}
	return s, true
}

// list reads an array of at most so many values.
func (f *fields) list(name string, most int) (list []any, ok bool) {
	v, ok := f.given(name, false)
	if !ok {
		return nil, false
	}
	if list, ok = v.([]any); !ok {
		f.fault(name, "not_a_list", "Er wordt een lijst verwacht.")
	}
	if len(list) > most {
		f.fault(name, "max_length", fmt.Sprintf("Er zijn ten hoogste %d waarden mogelijk.", most))
		return nil, false
	}
	return list, ok
}

// texts reads an object whose values are texts.
func (f *fields) texts(name string, rules textRules) map[string]string {
	v, ok := f.given(name, false)
	if !ok {
		return nil
	}
	all, ok := v.(map[string]any)
	if !ok {
		f.fault(name, "not_a_dict", "Er wordt een object verwacht.")
		return nil
	}
	out := make(map[string]string, len(all))
	below := fields{f.at + name + ".", all, f.faults}
	for key := range all {
		if s, ok := below.text(key, rules); ok {
			out[key] = s
		}
	}
	return out
}
