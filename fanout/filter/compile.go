package filter

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// clause is a compiled condition: one atom, or a junction of clauses.
type clause struct {
	junction junction
	atom     atom
	of       []clause
}

type junction uint8

const (
	single junction = iota
	allOf           // also of none
	anyOf           // of none: never holds
)

// atom is a condition on one field, by keys.
type atom struct {
	field field
	form  form
	// lo is the key that is compared with. isWithin is from lo to below hi. isContaining and its opposite have
	// a text instead, which is not empty, and the end of all texts that begin so.
	lo, hi string
}

type form uint8

const (
	isKey form = iota
	isWithin
	isContaining
	isPresent
	isKeyOrAbsent
	isNotKey // or absent
	isAbsent
	isNotContaining // or absent
	forms           = iota
)

func (c *clause) holds(e *Event) bool {
	if c.junction == single {
		return c.atom.holds(e)
	}
	for i := range c.of {
		if c.of[i].holds(e) == (c.junction == anyOf) {
			return c.junction == anyOf
		}
	}
	return c.junction == allOf
}

func (a *atom) holds(e *Event) bool {
	v := e.value(a.field)
	switch a.form {
	case isKey:
		return v.ok && v.key == a.lo
	case isWithin:
		return v.ok && a.lo <= v.key && v.key < a.hi
	case isContaining:
		return e.contains(a.field, a.lo)
	case isPresent:
		return v.ok
	case isKeyOrAbsent:
		return !v.ok || v.key == a.lo
	case isNotKey:
		return !v.ok || v.key != a.lo
	case isNotContaining:
		return !e.contains(a.field, a.lo)
	case isAbsent:
	}
	return !v.ok
}

// not returns the opposite of a clause. No clause is negated as such, so that an index has to know
// the forms of atoms only.
func not(c clause) clause {
	if c.junction == allOf {
		return clause{junction: anyOf, of: each(c.of, not)}
	}
	if c.junction == anyOf {
		return clause{junction: allOf, of: each(c.of, not)}
	}
	f := c.atom.field
	switch c.atom.form {
	case isKey:
		return only(atom{f, isNotKey, c.atom.lo, ""})
	case isNotKey:
		return only(atom{f, isKey, c.atom.lo, ""})
	case isPresent:
		return only(atom{f, isAbsent, "", ""})
	case isAbsent:
		return only(atom{f, isPresent, "", ""})
	case isContaining:
		return only(atom{f, isNotContaining, c.atom.lo, c.atom.hi})
	case isNotContaining:
		return only(atom{f, isContaining, c.atom.lo, c.atom.hi})
	case isKeyOrAbsent:
		return clause{junction: allOf, of: []clause{only(atom{f, isPresent, "", ""}), only(atom{f, isNotKey, c.atom.lo, ""})}}
	case isWithin:
	}
	return clause{junction: anyOf, of: []clause{
		only(atom{f, isAbsent, "", ""}), only(atom{f, isWithin, "", c.atom.lo}), only(atom{f, isWithin, c.atom.hi, endOfKeys}),
	}}
}

func only(a atom) clause { return clause{atom: a} }

func each(list []clause, change func(clause) clause) []clause {
	changed := make([]clause, len(list))
	for i, c := range list {
		changed[i] = change(c)
	}
	return changed
}

// compile compiles a valid filter.
func compile(f *Filter) clause {
	c := clause{junction: allOf}
	for _, p := range parts(f) {
		c.of = append(c.of, p.clause)
	}
	if len(c.of) == 1 {
		return c.of[0]
	}
	return c
}

// part is one member of a filter, or one element of a member whose elements must all hold.
type part struct {
	name   string
	index  int // -1: the whole member
	clause clause
}

// parts returns what must hold for a valid filter to hold.
func parts(f *Filter) (list []part) {
	if f.Topics != nil {
		list = append(list, part{"topics", -1, oneOf(field{source: ofTopic}, f.Topics)})
	}
	if f.Types != nil {
		list = append(list, part{"types", -1, typeClause(f.Types)})
	}
	list = append(list, matches("attributes.", ofKey, f.Attributes)...)
	list = append(list, matches("data.", ofMember, f.Data)...)
	for i, t := range f.Where {
		list = append(list, part{"where", i, testClause(t)})
	}
	if f.Any != nil {
		c := clause{junction: anyOf}
		for i := range f.Any {
			c.of = append(c.of, compile(&f.Any[i]))
		}
		list = append(list, part{"any", -1, c})
	}
	for i := range f.All {
		list = append(list, part{"all", i, compile(&f.All[i])})
	}
	if f.Not != nil {
		list = append(list, part{"not", -1, not(compile(f.Not))})
	}
	return list
}

// matches returns the match rule of the Notificaties API.
func matches(prefix string, s source, wanted map[string]string) (list []part) {
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if value := wanted[name]; value != "*" {
			a := atom{field{source: s, name: Key(name)}, isKeyOrAbsent, textKey(value), ""}
			list = append(list, part{prefix + name, -1, only(a)})
		}
	}
	return list
}

func oneOf(f field, texts []string) clause {
	keys := make([]string, len(texts))
	for i, s := range texts {
		keys[i] = textKey(s)
	}
	return isOneOf(f, keys)
}

func isOneOf(f field, keys []string) clause {
	if len(keys) == 1 {
		return only(atom{f, isKey, keys[0], ""})
	}
	c := clause{junction: anyOf, of: make([]clause, len(keys))}
	for i, key := range keys {
		c.of[i] = only(atom{f, isKey, key, ""})
	}
	return c
}

func typeClause(patterns []string) clause {
	f := field{source: ofType}
	c := clause{junction: anyOf}
	for _, p := range patterns {
		beginning, open := strings.CutSuffix(p, "*")
		switch {
		case p == "*":
			return clause{junction: allOf}
		case open:
			c.of = append(c.of, beginsWith(f, textKey(beginning)))
		default:
			c.of = append(c.of, only(atom{f, isKey, textKey(p), ""}))
		}
	}
	return c
}

// beginsWith holds for keys that begin so. What Validate accepts is UTF-8, which has no byte 255.
func beginsWith(f field, key string) clause {
	end := []byte(key)
	end[len(end)-1]++
	return only(atom{f, isWithin, key, string(end)})
}

func testClause(t Test) clause {
	source, name := fieldOf(t.Field)
	f := field{source: source, name: name}
	values, _, _ := t.Value.tokens()
	if source == ofAttribute && len(values) > 0 && values[0].Kind() == jsontext.KindNumber {
		f.source = ofNumber
	}
	keys := make([]string, len(values))
	for i, v := range values {
		keys[i] = keyOf(v.Kind(), v.String())
		if source == ofTime {
			at, _ := time.Parse(time.RFC3339Nano, v.String()) // Validate has parsed it
			keys[i] = timeKey(at)
		}
	}
	switch t.Op {
	case Exists:
		if t.Value == "false" {
			return only(atom{f, isAbsent, "", ""})
		}
		return only(atom{f, isPresent, "", ""})
	case Eq, In:
		return isOneOf(f, keys)
	case Neq, Nin:
		return not(isOneOf(f, keys))
	case Prefix:
		return beginsWith(f, keys[0])
	case Suffix:
		f.backwards = true
		return beginsWith(f, backwards(keys[0]))
	case Contains:
		if keys[0] == textKey("") { // any text
			return beginsWith(f, keys[0])
		}
		c := beginsWith(f, keys[0][1:])
		c.atom.form = isContaining
		return c
	case Gt, Gte, Lt, Lte:
	}
	return only(ordered(f, t.Op, keys[0]))
}

// ordered bounds a field within the values of the type of key.
func ordered(f field, op Op, key string) atom {
	a := atom{f, isWithin, key[:1], string(key[0] + 1)}
	if op == Gt || op == Lte {
		key += "\x00" // the next key
	}
	if op == Gt || op == Gte {
		a.lo = key
	} else {
		a.hi = key
	}
	return a
}

// fieldOf reads the name of a field.
func fieldOf(s string) (source, string) {
	switch s {
	case "topic":
		return ofTopic, ""
	case "type":
		return ofType, ""
	case "source":
		return ofSource, ""
	case "subject":
		return ofSubject, ""
	case "time":
		return ofTime, ""
	}
	if name, ok := strings.CutPrefix(s, "attributes."); ok {
		return ofAttribute, name
	}
	if path, ok := strings.CutPrefix(s, "data."); ok {
		return ofData, path
	}
	return noField, ""
}

// tokens returns the scalars of a value, and whether it is a list. It reports whether the value is
// of either form. No value is no scalars.
func (v Value) tokens() (scalars []jsontext.Token, list, ok bool) {
	if v == "" {
		return nil, false, true
	}
	text := jsontext.Value(v)
	if !text.IsValid() {
		return nil, false, false
	}
	list = text.Kind() == jsontext.KindBeginArray
	d := jsontext.NewDecoder(bytes.NewReader(text))
	for {
		t, err := d.ReadToken()
		if err != nil {
			return scalars, list, true // the end: the text is valid
		}
		switch kind := t.Kind(); {
		case kind == jsontext.KindBeginObject, kind == jsontext.KindBeginArray && d.StackDepth() > 1:
			return nil, list, false
		case kind != jsontext.KindBeginArray && kind != jsontext.KindEndArray:
			scalars = append(scalars, t.Clone())
		}
	}
}
