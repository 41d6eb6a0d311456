package filter

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// data is one value of an event's data.
type data struct {
	kind    jsontext.Kind
	text    string // of a text or a number
	members map[string]*data
	items   []*data
}

func (v *data) key() string { return keyOf(v.kind, v.text) }

// readData reads a JSON text.
func readData(text []byte) (*data, error) {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	v, err := readValue(d)
	if err != nil {
		return nil, err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more text after the JSON value")
	}
	return v, nil
}

// readValue reads one value. The decoder bounds how deep it goes.
func readValue(d *jsontext.Decoder) (*data, error) {
	t, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	v := &data{kind: t.Kind()}
	if v.kind == jsontext.KindBeginObject {
		return v, v.readMembers(d)
	}
	if v.kind == jsontext.KindBeginArray {
		return v, v.readItems(d)
	}
	v.text = t.String()
	return v, nil
}

func (v *data) readMembers(d *jsontext.Decoder) error {
	v.members = map[string]*data{}
	for d.PeekKind() != jsontext.KindEndObject {
		t, err := d.ReadToken()
		if err != nil {
			return err
		}
		name := t.String() // before the next read, which reuses its memory
		if v.members[name], err = readValue(d); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

func (v *data) readItems(d *jsontext.Decoder) error {
	v.items = []*data{}
	for d.PeekKind() != jsontext.KindEndArray {
		item, err := readValue(d)
		if err != nil {
			return err
		}
		v.items = append(v.items, item)
	}
	_, err := d.ReadToken()
	return err
}

// String returns a value for people.
func (v *data) String() string {
	switch {
	case v.members != nil:
		return "an object"
	case v.items != nil:
		return "an array"
	}
	return v.text
}

// find returns the value at a path, or nil.
func (v *data) find(path string) *data {
	for more := true; more && v != nil; {
		var name string
		name, path, more = cutPath(path)
		if v.items != nil {
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(v.items) || strconv.Itoa(i) != name {
				return nil
			}
			v = v.items[i]
			continue
		}
		v = v.members[name]
	}
	return v
}

// cutPath returns the first name of a path without its escapes, and the rest, if there is more.
func cutPath(path string) (name, rest string, more bool) {
	if !strings.Contains(path, `\`) {
		return strings.Cut(path, ".")
	}
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		switch {
		case path[i] == '.':
			return b.String(), path[i+1:], true
		case path[i] == '\\' && i+1 < len(path):
			i++
		}
		b.WriteByte(path[i])
	}
	return b.String(), "", false
}
