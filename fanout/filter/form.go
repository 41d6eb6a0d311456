package filter

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	json "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"

	"github.com/holdfast-mq/holdfast"
)

// Parse reads a filter from JSON or YAML, which must hold nothing else. It does not validate. The
// error wraps ErrInvalid.
func Parse(text []byte) (Filter, error) {
	var f Filter
	var err error
	if t := bytes.TrimLeft(text, " \t\r\n"); len(t) > 0 && t[0] == '{' && jsontext.Value(t).IsValid() {
		err = json.Unmarshal(t, &f)
	} else {
		d := yaml.NewDecoder(bytes.NewReader(text))
		err = d.Decode(&f)
		if errors.Is(err, io.EOF) {
			err = errors.New("there is no text: write {} for a filter that every event meets")
		} else if err == nil && !errors.Is(d.Decode(new(yaml.Node)), io.EOF) {
			err = errors.New("more text after the filter: write one filter")
		}
	}
	if err != nil {
		return Filter{}, fmt.Errorf("read filter: %w: %w", holdfast.ErrInvalid, err)
	}
	return f, nil
}

// tooDeep bounds the nesting of what is read, well above any limit of what is accepted.
const tooDeep = 200

// UnmarshalJSON refuses unknown members, and members that stand twice.
func (f *Filter) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, f) }

// UnmarshalJSONFrom is UnmarshalJSON within a longer text.
func (f *Filter) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if d.StackDepth() > tooDeep {
		return fmt.Errorf("is nested deeper than %d levels", tooDeep)
	}
	type plain Filter
	return json.UnmarshalDecode(d, (*plain)(f), json.RejectUnknownMembers(true))
}

// MarshalJSON writes a value as it is, and any text that is no JSON as a text.
func (v Value) MarshalJSON() ([]byte, error) {
	if t := jsontext.Value(v); t.IsValid() {
		return t, nil
	}
	return jsontext.AppendQuote(nil, strings.ToValidUTF8(string(v), "\uFFFD"))
}

// UnmarshalJSON keeps numbers as they are written, and texts in their shortest form.
func (v *Value) UnmarshalJSON(text []byte) error {
	t := jsontext.Value(text).Clone()
	err := t.Format(jsontext.PreserveRawStrings(false), jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
	*v = Value(t)
	return err
}

// UnmarshalYAML reads what UnmarshalJSON reads, written as YAML.
func (f *Filter) UnmarshalYAML(n *yaml.Node) error {
	text, err := appendJSON(nil, n, 0)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, f)
}

// MarshalYAML writes what MarshalJSON writes, as YAML.
func (v Value) MarshalYAML() (any, error) {
	text, err := v.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var n yaml.Node
	if err := yaml.Unmarshal(text, &n); err != nil {
		return nil, err
	}
	return n.Content[0], nil
}

// appendJSON writes a YAML node as JSON.
func appendJSON(b []byte, n *yaml.Node, depth int) ([]byte, error) {
	if depth > tooDeep {
		return nil, fmt.Errorf("line %d: is nested deeper than %d levels", n.Line, tooDeep)
	}
	var err error
	switch n.Kind {
	case yaml.MappingNode:
		b = append(b, '{')
		for i := 0; i+1 < len(n.Content) && err == nil; i += 2 {
			name := n.Content[i]
			if name.Kind != yaml.ScalarNode || name.Tag == "!!merge" {
				return nil, fmt.Errorf("line %d: a name must be a plain text", name.Line)
			}
			if b, err = jsontext.AppendQuote(comma(b, i), name.Value); err == nil {
				b, err = appendJSON(append(b, ':'), n.Content[i+1], depth+1)
			}
		}
		return append(b, '}'), err
	case yaml.SequenceNode:
		b = append(b, '[')
		for i := 0; i < len(n.Content) && err == nil; i++ {
			b, err = appendJSON(comma(b, i), n.Content[i], depth+1)
		}
		return append(b, ']'), err
	case yaml.ScalarNode:
		return appendScalar(b, n)
	case yaml.DocumentNode, yaml.AliasNode:
	}
	return nil, fmt.Errorf("line %d: aliases are not read here: write the value out", n.Line)
}

func comma(b []byte, i int) []byte {
	if i > 0 {
		b = append(b, ',')
	}
	return b
}

func appendScalar(b []byte, n *yaml.Node) ([]byte, error) {
	var truth bool
	tag := n.ShortTag()
	if n.Style == 0 && isNumber(n.Value) {
		tag = "!!float" // also where it is too great for the YAML package, which calls it a text
	}
	switch tag {
	case "!!null":
		return append(b, "null"...), nil
	case "!!bool":
		err := n.Decode(&truth)
		return fmt.Appendf(b, "%t", truth), err
	case "!!int", "!!float":
		if !isNumber(n.Value) {
			return nil, fmt.Errorf("line %d: %.40q is no number of JSON: write it in plain decimals, or in quotes if it is a text", n.Line, n.Value)
		}
		return append(b, n.Value...), nil
	}
	return jsontext.AppendQuote(b, n.Value)
}
