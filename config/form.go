package config

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// form is how values of one type are written.
type form[V any] struct {
	read   func(l *loader, to *V) decode
	show   func(v V) *yaml.Node
	check  func(r *report, path string, v V) // nil: whatever can be read is right
	values string                            // as the guide tells them
	schema schema
}

// schema is a part of a JSON Schema.
type schema map[string]any

// with returns the schema with one more key.
func (s schema) with(key string, value any) schema {
	s = maps.Clone(s)
	s[key] = value
	return s
}

// json is v as the JSON Schema writes it.
func (f form[V]) json(v V) any {
	n := f.show(v)
	var value any
	if err := n.Decode(&value); err != nil {
		return n.Value
	}
	return value
}

const (
	durationPattern = `^([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h|d|w))+$`
	sizePattern     = `^[0-9]+ *(B|[KMGTP]i?B)$`
)

// period is a time within bounds.
func period(least, most time.Duration) form[time.Duration] {
	return form[time.Duration]{
		read:   (*loader).duration,
		show:   func(d time.Duration) *yaml.Node { return timeNode(d, "") },
		check:  func(r *report, path string, d time.Duration) { r.between(path, d, least, most) },
		values: "`" + FormatDuration(least) + "` to `" + FormatDuration(most) + "`",
		schema: schema{"type": "string", "pattern": durationPattern},
	}
}

// periodOr is a period, or the word that means Never.
func periodOr(never string, least, most time.Duration) form[time.Duration] {
	f := period(least, most)
	f.read = func(l *loader, to *time.Duration) decode { return l.durationOr(to, never) }
	f.show = func(d time.Duration) *yaml.Node { return timeNode(d, never) }
	f.check = func(r *report, path string, d time.Duration) {
		if d != Never {
			r.between(path, d, least, most)
		}
	}
	f.values += ", or `" + never + "`"
	f.schema = schema{"anyOf": []schema{f.schema, {"const": never}}}
	return f
}

// size is a number of bytes within bounds; zero is what 0B means, empty: it is
// out of them.
func size(least, most int64, zero string) form[int64] {
	fix := fmt.Sprintf("write a size from %s to %s", FormatSize(least), FormatSize(most))
	values := "`" + FormatSize(least) + "` to `" + FormatSize(most) + "`"
	if zero != "" {
		fix, values = fix+", or 0B for "+zero, values+", or `0B` for "+zero
	}
	return form[int64]{
		read: (*loader).size,
		show: func(n int64) *yaml.Node { return str(FormatSize(n)) },
		check: func(r *report, path string, n int64) {
			if (n != 0 || zero == "") && (n < least || n > most) {
				r.fault(path, FormatSize(n), problem{"is out of bounds", fix})
			}
		},
		values: values,
		schema: schema{"type": "string", "pattern": sizePattern},
	}
}

// count is a whole number within bounds; zero is what 0 means, empty: it is as
// any other number.
func count(least, most int, zero, example string) form[int] {
	fix := fmt.Sprintf("write a number from %d to %d", least, most)
	values := fmt.Sprintf("`%d` to `%d`", least, most)
	if zero != "" {
		fix, values = fix+", or 0 for "+zero, values+", or `0` for "+zero
	}
	bounds := schema{"type": "integer", "minimum": least, "maximum": most}
	if zero != "" {
		bounds = schema{"anyOf": []schema{bounds, {"const": 0}}}
	}
	return form[int]{
		read: func(l *loader, to *int) decode { return l.integer(to, example) },
		show: func(n int) *yaml.Node { return plain("!!int", strconv.Itoa(n)) },
		check: func(r *report, path string, n int) {
			if (n != 0 || zero == "") && (n < least || n > most) {
				r.fault(path, strconv.Itoa(n), problem{"is out of bounds", fix})
			}
		},
		values: values,
		schema: bounds,
	}
}

// truth is true or false.
func truth() form[bool] {
	return form[bool]{
		read:   (*loader).boolean,
		show:   func(b bool) *yaml.Node { return plain("!!bool", strconv.FormatBool(b)) },
		values: "`true`, `false`",
		schema: schema{"type": "boolean"},
	}
}

// word is one of the known words.
func word[T ~string](example T, known ...T) form[T] {
	f := words(example, func(r *report, path string, w T) { oneOf(r, path, w, known...) })
	list := make([]string, len(known))
	for i, k := range known {
		list[i] = string(k)
	}
	f.values = "`" + strings.Join(list, "`, `") + "`"
	f.schema = schema{"enum": list}
	return f
}

// words is a text.
func words[T ~string](example T, check func(r *report, path string, s T)) form[T] {
	return form[T]{
		read:   func(l *loader, to *T) decode { return text(l, to, string(example)) },
		show:   func(s T) *yaml.Node { return str(string(s)) },
		check:  check,
		values: "text",
		schema: schema{"type": "string"},
	}
}

// name is what nodes and sources are called.
func name(example string) form[string] {
	f := words(example, func(r *report, path, s string) {
		if p := nameProblem(s); p != nil {
			r.fault(path, s, *p)
		}
	})
	f.values = "name"
	f.schema = schema{"type": "string", "minLength": 1, "maxLength": maxName}
	return f
}

// location is a path, relative to the folder of the file.
func location(example string) form[string] {
	f := words(example, (*report).checkPath)
	f.read = func(l *loader, to *string) decode { return l.path(to, example) }
	f.values = "path"
	return f
}

// file is a location that can be read when the configuration is.
func file(example string) form[string] {
	f := location(example)
	f.read = func(l *loader, to *string) decode {
		return func(path string, n *yaml.Node) {
			l.path(to, example)(path, n)
			if !l.bad[path] {
				l.readable(path, *to)
			}
		}
	}
	return f
}

// list is a key that holds a list of texts, and is printed where it has some.
func list[S any](name string, at func(s *S) *[]string, example string, check func(r *report, path, item string), doc string) entry[S] {
	return entry[S]{
		name: name,
		read: func(l *loader, s *S) decode {
			return func(path string, n *yaml.Node) { *at(s) = l.texts(path, n, example) }
		},
		show: func(_ printer, s *S) *yaml.Node {
			if len(*at(s)) == 0 {
				return nil
			}
			return listOf(*at(s), func(item string) string { return item })
		},
		check: func(r *report, path string, s *S) {
			for i, item := range *at(s) {
				check(r, element(path, i), item)
			}
		},
		told:   []row{{"", doc, "list of texts", "none"}},
		schema: schema{"type": "array", "items": schema{"type": "string"}},
	}
}

const variableCell = "upper-case letters, digits and `_`"

// placeSchema is that of a mapping that says where something is.
func placeSchema() schema {
	variable, file := schema{"type": "string", "pattern": "^[A-Z_][A-Z0-9_]*$"}, schema{"type": "string"}
	return schema{
		"type": "object", "properties": schema{"env": variable, "file": file}, "additionalProperties": false,
		"minProperties": 1, "maxProperties": 1,
	}
}
