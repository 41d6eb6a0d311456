package filter

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Event is what filters are asked about. One goroutine at a time uses an Event; it does not change
// after its first use.
type Event struct {
	// An empty text and a zero time are absent fields.
	Topic, Type, Source, Subject string
	Time                         time.Time
	Attributes                   map[string]string
	// Data is JSON, or anything else. It is read once, when the first filter asks for it.
	Data []byte

	values     map[field]found
	parts      map[partOf]bool   // of long texts, whether it stands there
	byKey      map[string]string // attributes by Key
	members    map[string]*data  // of the data, by Key
	data       *data
	size       int   // how many values there are in data
	unreadable error // why Data has no fields
	parsed     bool
	names      []field // see fields
}

// source is where a field stands in an event, and how it is read.
type source uint8

const (
	ofTopic source = iota
	ofType
	ofSource
	ofSubject
	ofTime
	ofAttribute
	ofNumber // an attribute, read as a number
	ofKey    // an attribute, by Key
	ofMember // a member of the data, by Key
	ofData
	noField
)

// field is a field of events. Backwards reads a text from its end, for suffixes.
type field struct {
	source    source
	backwards bool
	name      string
}

// found is a value of a field as its key, see keyOf.
type found struct {
	key string
	ok  bool
}

// value returns the value of a field.
func (e *Event) value(f field) found {
	v, seen := e.values[f]
	if seen {
		return v
	}
	if f.backwards {
		forth := f
		forth.backwards = false
		if v = e.value(forth); v.ok && v.key[0] == textTag {
			v.key = backwards(v.key)
		}
	} else {
		v = e.read(f)
	}
	if !v.ok {
		v.key = "" // as no value has it
	}
	if e.values == nil {
		e.values = make(map[field]found, 16)
	}
	e.values[f] = v
	return v
}

func (e *Event) read(f field) found {
	switch f.source {
	case ofTopic:
		return present(e.Topic)
	case ofType:
		return present(e.Type)
	case ofSource:
		return present(e.Source)
	case ofSubject:
		return present(e.Subject)
	case ofTime:
		return found{timeKey(e.Time), !e.Time.IsZero()}
	case ofAttribute:
		s, ok := e.Attributes[f.name]
		return found{textKey(s), ok}
	case ofNumber:
		key, ok := numberKey(e.Attributes[f.name])
		return found{key, ok}
	case ofKey:
		s, ok := e.keyed()[f.name]
		return found{textKey(s), ok}
	case ofMember:
		return keyFound(e.keyedMembers()[f.name])
	case ofData:
		return keyFound(e.root().find(f.name))
	case noField:
	}
	return found{}
}

// partOf is a text that may stand in a field.
type partOf struct {
	field field
	text  string
}

// longText is from how many bytes a text is asked only once for each part.
const longText = 4096

// contains reports whether part stands in a text.
func (e *Event) contains(f field, part string) bool {
	text, ok := e.value(f).text()
	if len(text) < longText {
		return ok && strings.Contains(text, part)
	}
	there, known := e.parts[partOf{f, part}]
	if !known {
		there = strings.Contains(text, part)
		e.know(f, part, there)
	}
	return there
}

// know keeps whether part stands in a long text.
func (e *Event) know(f field, part string, there bool) {
	if e.parts == nil {
		e.parts = map[partOf]bool{}
	}
	e.parts[partOf{f, part}] = there
}

// text returns a value that is a text.
func (v found) text() (string, bool) {
	if !v.ok || v.key[0] != textTag {
		return "", false
	}
	return v.key[1:], true
}

func present(s string) found { return found{textKey(s), s != ""} }

func keyFound(d *data) found {
	if d == nil {
		return found{}
	}
	return found{d.key(), true}
}

// keyed returns the attributes by Key.
func (e *Event) keyed() map[string]string {
	if e.byKey == nil {
		e.byKey = byKey(e.Attributes)
	}
	return e.byKey
}

// keyedMembers returns the members of the data by Key.
func (e *Event) keyedMembers() map[string]*data {
	if d := e.root(); e.members == nil && d != nil {
		e.members = byKey(d.members)
	}
	return e.members
}

// byKey returns values by the Key of their names. Of two with one key, the first in the order of names counts.
func byKey[V any](all map[string]V) map[string]V {
	if same(all) {
		return all
	}
	keyed := make(map[string]V, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		key := Key(name)
		if _, twice := keyed[key]; !twice {
			keyed[key] = all[name]
		}
	}
	return keyed
}

// same reports whether each name is its own Key.
func same[V any](all map[string]V) bool {
	for name := range all {
		if Key(name) != name {
			return false
		}
	}
	return true
}

// root returns the data, or nil if they have no fields.
func (e *Event) root() *data {
	if !e.parsed {
		e.parsed = true
		e.data, e.size, e.unreadable = readData(e.Data)
	}
	return e.data
}

// mostFields is how many fields returns at most.
func (e *Event) mostFields() int {
	e.root()
	return 5 + 3*len(e.Attributes) + 2*e.size
}

// fields returns all fields that are there, and some that are not.
func (e *Event) fields() []field {
	if e.names != nil {
		return e.names
	}
	e.names = make([]field, 0, e.mostFields())
	add := func(s source, name string) { e.names = append(e.names, field{source: s, name: name}) }
	for _, s := range []source{ofTopic, ofType, ofSource, ofSubject, ofTime} {
		add(s, "")
	}
	for name := range e.Attributes {
		add(ofAttribute, name)
		add(ofNumber, name)
	}
	for name := range e.keyed() {
		add(ofKey, name)
	}
	for name := range e.keyedMembers() {
		add(ofMember, name)
	}
	e.root().walk("", func(path string) { add(ofData, path) })
	return e.names
}
