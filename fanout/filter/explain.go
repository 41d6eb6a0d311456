package filter

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Explanation says whether an event meets a filter, and why not.
type Explanation struct {
	Matched bool
	// Reasons are the conditions that do not hold, if not Matched. They are ten at most.
	Reasons []Reason
}

// Reason is one condition that does not hold.
type Reason struct {
	Place string // in the filter, such as any[1].where[0]
	Want  string // the condition
	Saw   string // what the event has instead, clipped
}

func (r Reason) String() string { return r.Place + ": want " + r.Want + ", saw " + r.Saw }

// String returns the explanation in one line.
func (x Explanation) String() string {
	if x.Matched {
		return "matches"
	}
	texts := make([]string, len(x.Reasons))
	for i, r := range x.Reasons {
		texts[i] = r.String()
	}
	return strings.Join(texts, "; ")
}

// maxReasons bounds an explanation.
const maxReasons = 10

// Explain says whether e meets f, and why not. It decides as an Index does. A filter that is not
// valid is met by no event.
func Explain(f Filter, e *Event) Explanation {
	if err := f.Validate(unlimited()); err != nil {
		return Explanation{Reasons: []Reason{{"filter", "a valid filter", clip(err.Error())}}}
	}
	c := compile(&f)
	if c.holds(e) {
		return Explanation{Matched: true}
	}
	var r reasons
	r.add(&f, e, "")
	return Explanation{Reasons: r}
}

type reasons []Reason

// add adds why e does not meet f.
func (r *reasons) add(f *Filter, e *Event, place string) {
	for _, p := range parts(f) {
		if len(*r) >= maxReasons {
			return
		}
		if p.clause.holds(e) {
			continue
		}
		switch p.name {
		case "any":
			for i := range f.Any {
				r.add(&f.Any[i], e, element(place, "any", i))
			}
		case "all":
			r.add(&f.All[p.index], e, element(place, "all", p.index))
		case "not":
			r.put(join(place, "not"), "this not to hold", "that it holds")
		case "where":
			t := f.Where[p.index]
			r.put(element(place, "where", p.index), fmt.Sprintf("%s %s %s", t.Field, t.Op, t.Value), show(e, t.Field))
		case "topics":
			r.put(join(place, p.name), "one of "+strings.Join(f.Topics, ", "), show(e, "topic"))
		case "types":
			r.put(join(place, p.name), "one of "+strings.Join(f.Types, ", "), show(e, "type"))
		default:
			in, name, _ := strings.Cut(p.name, ".")
			if in == "data" {
				r.put(join(place, p.name), fmt.Sprintf("%q or none", f.Data[name]), shown(e.keyedMembers()[Key(name)]))
			} else {
				r.put(join(place, p.name), fmt.Sprintf("%q or none", f.Attributes[name]), fmt.Sprintf("%q", clip(e.keyed()[Key(name)])))
			}
		}
	}
}

func (r *reasons) put(place, want, saw string) {
	if len(*r) < maxReasons {
		*r = append(*r, Reason{clip(place), clip(want), saw})
	}
}

// show returns the value of a field for people.
func show(e *Event, name string) string {
	source, name := fieldOf(name)
	v := e.value(field{source: source, name: name})
	switch {
	case source == ofData && e.root() == nil:
		return "data without fields: " + clip(e.unreadable.Error())
	case !v.ok:
		return "no such field"
	case source == ofTime:
		return e.Time.UTC().Format("2006-01-02T15:04:05.999999999Z07:00")
	case source == ofData:
		return shown(e.root().find(name))
	case v.key[0] == textTag:
		return fmt.Sprintf("%q", clip(v.key[1:]))
	}
	return clip(v.key)
}

// shown returns a value of the data for people.
func shown(v *data) string {
	if v.kind == jsontext.KindString {
		return fmt.Sprintf("%q", clip(v.text))
	}
	return clip(v.String())
}

// clip shortens a text that is shown.
func clip(s string) string {
	const limit = 120
	if len(s) <= limit {
		return s
	}
	end := limit
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}
