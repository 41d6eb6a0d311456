package setting

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Form says how to read, show and check values of one type.
type Form[V any] struct {
	Read   func(l *Loader, to *V) Decode
	Show   func(v V) *yaml.Node
	Check  func(r *Report, path string, v V) // nil: every value that can be read is right
	Values string                            // as the guide describes them
	Schema Schema
}

// Schema is a part of a JSON Schema.
type Schema map[string]any

// With returns the schema with one more key.
func (s Schema) With(key string, value any) Schema {
	s = maps.Clone(s)
	s[key] = value
	return s
}

// json returns v as it stands in the JSON Schema.
func (f Form[V]) json(v V) any {
	n := f.Show(v)
	var value any
	if err := n.Decode(&value); err != nil {
		return n.Value
	}
	return value
}

// Patterns of durations and sizes.
const (
	DurationPattern = `^([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h|d|w))+$`
	sizePattern     = `^[0-9]+ *(B|[KMGTP]i?B)$`
)

// Period is a duration within bounds.
func Period(least, most time.Duration) Form[time.Duration] {
	return Form[time.Duration]{
		Read:   (*Loader).Duration,
		Show:   func(d time.Duration) *yaml.Node { return timeNode(d, "") },
		Check:  func(r *Report, path string, d time.Duration) { r.Between(path, d, least, most) },
		Values: "`" + FormatDuration(least) + "` to `" + FormatDuration(most) + "`",
		Schema: Schema{"type": "string", "pattern": DurationPattern},
	}
}

// PeriodOr is a Period, or the word that means Never.
func PeriodOr(never string, least, most time.Duration) Form[time.Duration] {
	f := Period(least, most)
	f.Read = func(l *Loader, to *time.Duration) Decode { return l.durationOr(to, never) }
	f.Show = func(d time.Duration) *yaml.Node { return timeNode(d, never) }
	f.Check = func(r *Report, path string, d time.Duration) {
		if d != Never {
			r.Between(path, d, least, most)
		}
	}
	f.Values += ", or `" + never + "`"
	f.Schema = Schema{"anyOf": []Schema{f.Schema, {"const": never}}}
	return f
}

// Size is a number of bytes within bounds. zero says what 0B means; empty: 0B is out of bounds.
func Size(least, most int64, zero string) Form[int64] {
	fix := fmt.Sprintf("write a size from %s to %s", FormatSize(least), FormatSize(most))
	values := "`" + FormatSize(least) + "` to `" + FormatSize(most) + "`"
	if zero != "" {
		fix, values = fix+", or 0B for "+zero, values+", or `0B` for "+zero
	}
	return Form[int64]{
		Read: (*Loader).size,
		Show: func(n int64) *yaml.Node { return Str(FormatSize(n)) },
		Check: func(r *Report, path string, n int64) {
			if (n != 0 || zero == "") && (n < least || n > most) {
				r.Fault(path, FormatSize(n), Problem{"is out of bounds", fix})
			}
		},
		Values: values,
		Schema: Schema{"type": "string", "pattern": sizePattern},
	}
}

// Count is a whole number within bounds. zero says what 0 means; empty: 0 is like any other number.
func Count(least, most int, zero, example string) Form[int] {
	fix := fmt.Sprintf("write a number from %d to %d", least, most)
	values := fmt.Sprintf("`%d` to `%d`", least, most)
	if zero != "" {
		fix, values = fix+", or 0 for "+zero, values+", or `0` for "+zero
	}
	bounds := Schema{"type": "integer", "minimum": least, "maximum": most}
	if zero != "" {
		bounds = Schema{"anyOf": []Schema{bounds, {"const": 0}}}
	}
	return Form[int]{
		Read: func(l *Loader, to *int) Decode { return Integer(l, to, example) },
		Show: func(n int) *yaml.Node { return Scalar("!!int", strconv.Itoa(n)) },
		Check: func(r *Report, path string, n int) {
			if (n != 0 || zero == "") && (n < least || n > most) {
				r.Fault(path, strconv.Itoa(n), Problem{"is out of bounds", fix})
			}
		},
		Values: values,
		Schema: bounds,
	}
}

// Truth is true or false.
func Truth() Form[bool] {
	return Form[bool]{
		Read:   Boolean,
		Show:   func(b bool) *yaml.Node { return Scalar("!!bool", strconv.FormatBool(b)) },
		Values: "`true`, `false`",
		Schema: Schema{"type": "boolean"},
	}
}

// Word is one of the known words.
func Word[T ~string](example T, known ...T) Form[T] {
	f := Words(example, func(r *Report, path string, w T) { OneOf(r, path, w, known...) })
	list := make([]string, len(known))
	for i, k := range known {
		list[i] = string(k)
	}
	f.Values = "`" + strings.Join(list, "`, `") + "`"
	f.Schema = Schema{"enum": list}
	return f
}

// Words is a text.
func Words[T ~string](example T, check func(r *Report, path string, s T)) Form[T] {
	return Form[T]{
		Read:   func(l *Loader, to *T) Decode { return Text(l, to, string(example)) },
		Show:   func(s T) *yaml.Node { return Str(string(s)) },
		Check:  check,
		Values: "text",
		Schema: Schema{"type": "string"},
	}
}

// Name is the name of a node or a source.
func Name(example string) Form[string] {
	f := Words(example, func(r *Report, path, s string) {
		if p := NameProblem(s); p != nil {
			r.Fault(path, s, *p)
		}
	})
	f.Values = "name"
	f.Schema = Schema{"type": "string", "minLength": 1, "maxLength": maxName}
	return f
}

// Location is a path, relative to the folder of the file.
func Location(example string) Form[string] {
	f := Words(example, (*Report).checkPath)
	f.Read = func(l *Loader, to *string) Decode { return l.path(to, example) }
	f.Values = "path"
	return f
}

// File is a Location that must be readable when the configuration is read.
func File(example string) Form[string] {
	f := Location(example)
	f.Read = func(l *Loader, to *string) Decode {
		return func(path string, n *yaml.Node) {
			l.path(to, example)(path, n)
			if !l.Bad[path] {
				l.readable(path, *to)
			}
		}
	}
	return f
}

// List is a key that holds a list of texts. It is printed if the list is not empty.
func List[S any](name string, at func(s *S) *[]string, example string, check func(r *Report, path, item string), doc string) Entry[S] {
	return Entry[S]{
		Name: name,
		Read: func(l *Loader, s *S) Decode {
			return func(path string, n *yaml.Node) { *at(s) = l.texts(path, n, example) }
		},
		Show: func(_ Printer, s *S) *yaml.Node {
			if len(*at(s)) == 0 {
				return nil
			}
			return ListOf(*at(s), func(item string) string { return item })
		},
		Check: func(r *Report, path string, s *S) {
			for i, item := range *at(s) {
				check(r, Element(path, i), item)
			}
		},
		Told:   []Row{{"", doc, "list of texts", "none"}},
		Schema: Schema{"type": "array", "items": Schema{"type": "string"}},
	}
}

// VariableCell is what the guide says about the name of a variable.
const VariableCell = "upper-case letters, digits and `_`"

// PlaceSchema returns the schema of a mapping that says where something is.
func PlaceSchema() Schema {
	variable, file := Schema{"type": "string", "pattern": "^[A-Z_][A-Z0-9_]*$"}, Schema{"type": "string"}
	return Schema{
		"type": "object", "properties": Schema{"env": variable, "file": file}, "additionalProperties": false,
		"minProperties": 1, "maxProperties": 1,
	}
}
