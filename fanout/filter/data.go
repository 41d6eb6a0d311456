package filter

import (
	"bytes"
	"errors"
	"fmt"
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

// readData reads a JSON text, and counts its values.
func readData(text []byte) (*data, int, error) {
	r := reader{Decoder: jsontext.NewDecoder(bytes.NewReader(text))}
	v, err := r.value()
	if err == nil {
		if _, end := r.ReadToken(); !errors.Is(end, io.EOF) {
			err = errors.New("there is more text after the JSON value")
		}
	}
	if err != nil {
		return nil, 0, err
	}
	return v, r.count, nil
}

type reader struct {
	*jsontext.Decoder

	count int
}

func (r *reader) value() (*data, error) {
	r.count++
	if r.StackDepth() > tooDeep {
		return nil, fmt.Errorf("it is nested deeper than %d levels", tooDeep)
	}
	t, err := r.ReadToken()
	if err != nil {
		return nil, err
	}
	v := &data{kind: t.Kind()}
	if v.kind == jsontext.KindBeginObject {
		return v, r.members(v)
	}
	if v.kind == jsontext.KindBeginArray {
		return v, r.items(v)
	}
	v.text = t.String()
	return v, nil
}

func (r *reader) members(v *data) error {
	v.members = map[string]*data{}
	for r.PeekKind() != jsontext.KindEndObject {
		t, err := r.ReadToken()
		if err != nil {
			return err
		}
		name := t.String() // before the next read, which reuses its memory
		if v.members[name], err = r.value(); err != nil {
			return err
		}
	}
	_, err := r.ReadToken()
	return err
}

func (r *reader) items(v *data) error {
	v.items = []*data{}
	for r.PeekKind() != jsontext.KindEndArray {
		item, err := r.value()
		if err != nil {
			return err
		}
		v.items = append(v.items, item)
	}
	_, err := r.ReadToken()
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

// walk calls visit with the path of each value below v.
func (v *data) walk(path string, visit func(path string)) {
	if v == nil {
		return
	}
	for i, item := range v.items {
		below := join(path, strconv.Itoa(i))
		visit(below)
		item.walk(below, visit)
	}
	for name, member := range v.members {
		below := join(path, escape(name))
		visit(below)
		member.walk(below, visit)
	}
}

// escape writes a name as a part of a path.
func escape(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, `\`, `\\`), ".", `\.`)
}
