package sqlwrite

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-mq/holdfast"
)

// object is a JSON object. Its values are unchanged pieces of the text.
type object map[string]jsontext.Value

// objectOf reads a JSON object with nothing after it. Duplicate names and invalid UTF-8 are errors:
// what is written must not depend on who reads it.
func objectOf(text []byte) (object, error) {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	if start, err := d.ReadToken(); err != nil || start.Kind() != '{' {
		return nil, errors.New("is not a JSON object")
	}
	o := object{}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, errors.New("is not a JSON object, or has a name twice")
		}
		key := name.String() // copied before the next read, which reuses its memory
		value, err := d.ReadValue()
		if err != nil {
			return nil, errors.New("is not a JSON object, or has a name twice")
		}
		o[key] = value.Clone()
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, errors.New("is not a JSON object")
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("has more text after its JSON object")
	}
	return o, nil
}

// find returns the member at a path of names.
func (o object) find(path string) (jsontext.Value, bool) {
	name, rest, deeper := strings.Cut(path, ".")
	value, ok := o[name]
	if !ok || !deeper {
		return value, ok
	}
	inner, err := objectOf(value)
	if err != nil {
		return nil, false
	}
	return inner.find(rest)
}

// own returns the parameters of the message itself. Those that it does not have are null.
func own(m *holdfast.Message) map[string]jsontext.Value {
	known := map[string]jsontext.Value{"_payload": m.Payload}
	for name, text := range map[string]string{
		"_id": string(m.ID), "_source": m.Source, "_destination": m.Destination, "_endpoint": m.Endpoint, "_kind": string(m.Kind),
		"_correlation_id": m.CorrelationID, "_ordering_key": m.OrderingKey,
	} {
		quoted, err := jsontext.AppendQuote(nil, text)
		if err != nil || text == "" {
			quoted = []byte("null")
		}
		known[name] = quoted
	}
	return known
}

// members returns the values of the parameters, in their order.
func members(m *holdfast.Message, from object, names []string) ([]jsontext.Value, *holdfast.Failure) {
	known := own(m)
	list := make([]jsontext.Value, len(names))
	for i, name := range names {
		value, ok := known[name]
		if !ok {
			value, ok = from.find(name)
		}
		if !ok {
			return nil, refused(codeMissing, fmt.Errorf("the payload has no %q, which the statement takes", name))
		}
		list[i] = value
	}
	return list, nil
}

func refused(code string, err error) *holdfast.Failure {
	return &holdfast.Failure{Outcome: holdfast.Permanent, Code: code, Err: err}
}

func unfitting(name string, err error) *holdfast.Failure {
	return refused(codeData, fmt.Errorf("the payload's %q %w", name, err))
}
