package sqlwrite

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-mq/holdfast"
)

// object is a JSON object, its members as they stand in the text.
type object map[string]jsontext.Value

// decimal is a number that is no integer of 64 bits, as it was written.
type decimal string

// objectOf reads a JSON object and nothing behind it. Names that are there
// twice, and what is not UTF-8, are errors: what is written must not depend on
// who reads.
func objectOf(text []byte) (object, error) {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	if start, err := d.ReadToken(); err != nil || start.Kind() != '{' {
		return nil, errors.New("is no JSON object")
	}
	o := object{}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, errors.New("is no JSON object, or has a name twice")
		}
		key := name.String() // before the next read, which reuses its memory
		value, err := d.ReadValue()
		if err != nil {
			return nil, errors.New("is no JSON object, or has a name twice")
		}
		o[key] = value.Clone()
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, errors.New("is no JSON object")
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("has something behind its JSON object")
	}
	return o, nil
}

// find is the member that a path of names leads to.
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

// valueOf is nil, a bool, an int64, a decimal or a string.
func valueOf(v jsontext.Value) (any, error) {
	switch kind := byte(v.Kind()); kind {
	case 'n':
		return nil, nil
	case 't', 'f':
		return kind == 't', nil
	case '"':
		text, err := jsontext.AppendUnquote(nil, v)
		return string(text), err
	case '0':
		return numberOf(string(v)), nil
	}
	return string(v), nil
}

// exact is how many digits a float64 tells apart.
const exact = 15

// numberOf makes an int64 of a number that is one, however it is written: 1.0
// and 1e3 are integers in JSON.
func numberOf(text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	mantissa, _, _ := strings.Cut(strings.ToLower(text), "e")
	if len(mantissa) <= exact {
		if f, err := strconv.ParseFloat(text, 64); err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 && (f != 0 || strings.Trim(mantissa, "-0.") == "") {
			return int64(f)
		}
	}
	return decimal(text)
}

// own are the parameters of the message itself.
func own(m *holdfast.Message) map[string]any {
	known := map[string]any{
		"_id": string(m.ID), "_source": m.Source, "_destination": m.Destination, "_endpoint": m.Endpoint, "_kind": string(m.Kind),
		"_correlation_id": m.CorrelationID, "_ordering_key": m.OrderingKey, "_payload": string(m.Payload),
	}
	for name, value := range known {
		if value == "" {
			known[name] = nil
		}
	}
	return known
}

// arguments are the values of the parameters, in their order.
func arguments(m *holdfast.Message, from object, names []string) ([]any, *holdfast.Failure) {
	known := own(m)
	list := make([]any, len(names))
	for i, name := range names {
		if value, ok := known[name]; ok {
			list[i] = value
			continue
		}
		found, ok := from.find(name)
		if !ok {
			return nil, refused(codeMissing, fmt.Errorf("the payload has no %q, which the statement takes", name))
		}
		value, err := valueOf(found)
		if err != nil {
			return nil, refused(codePayload, fmt.Errorf("the payload's %q cannot be read", name))
		}
		list[i] = value
	}
	return list, nil
}

func refused(code string, err error) *holdfast.Failure {
	return &holdfast.Failure{Outcome: holdfast.Permanent, Code: code, Err: err}
}
