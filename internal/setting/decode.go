package setting

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxNodes bounds the work that aliases in a small file can cause.
const maxNodes = 50_000

// Decode reads one value and stores it.
type Decode func(path string, n *yaml.Node)

// Keys are the known keys of a mapping.
type Keys map[string]Decode

// Document reads the one YAML document of a file.
func (l *Loader) Document(data []byte, known Keys) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	doc, err := next(dec)
	if errors.Is(err, io.EOF) {
		return // only comments
	}
	if err == nil {
		var second *yaml.Node
		if second, err = next(dec); err == nil {
			l.syntax(second.Line, Problem{"a second document begins here", "keep one document in the file"})
			return
		}
	}
	if !errors.Is(err, io.EOF) {
		line, text := syntaxError(err)
		l.syntax(line, Problem{"is not YAML: " + text, "check indentation, colons and quotes in this line and in its block"})
		return
	}
	l.Object("", doc.Content[0], known)
}

func (l *Loader) syntax(line int, p Problem) {
	l.faults = append(l.faults, Fault{File: l.File, Line: line, Problem: p.What, Fix: p.Fix})
}

// next returns the next document. It turns a panic of the parser, which some broken input causes, into an error.
func next(dec *yaml.Decoder) (doc *yaml.Node, err error) {
	defer func() {
		if p := recover(); p != nil {
			doc, err = nil, fmt.Errorf("yaml: %v", p)
		}
	}()
	doc = &yaml.Node{}
	if err := dec.Decode(doc); err != nil {
		return nil, err
	}
	if len(doc.Content) == 0 {
		return nil, errors.New("yaml: empty document")
	}
	return doc, nil
}

// syntaxError takes the line out of the library's "yaml: line 3: did not find expected key". Its scanner
// counts lines from 1. Its parser counts from 0 and leaves the first one out. The texts tell the two apart.
func syntaxError(err error) (line int, text string) {
	text = strings.TrimPrefix(err.Error(), "yaml: ")
	if after, ok := strings.CutPrefix(text, "line "); ok {
		number, rest, _ := strings.Cut(after, ": ")
		if n, err := strconv.Atoi(number); err == nil {
			line, text = n, rest
		}
	}
	if what, ok := strings.CutPrefix(text, "did not find expected "); ok {
		for _, parsers := range []string{"key", "'-'", "','", "node content", "<document start>"} {
			if strings.HasPrefix(what, parsers) {
				return line + 1, text
			}
		}
	}
	return line, text
}

// Value follows an alias, and refuses YAML features that no configuration needs.
func (l *Loader) Value(path string, n *yaml.Node) (*yaml.Node, bool) {
	if l.nodes++; l.nodes > maxNodes {
		if l.nodes == maxNodes+1 {
			l.Unreadable(path, "", Problem{fmt.Sprintf("is beyond the %d values that a configuration may have", maxNodes), "use fewer aliases"})
		}
		return nil, false
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Style&yaml.TaggedStyle != 0 {
		l.Unreadable(path, "", Problem{"has the tag " + strconv.Quote(clip(n.Tag)), "remove it: the type of a value follows from its key"})
		return nil, false
	}
	return n, true
}

// IsNull reports whether a key has no value.
func IsNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// Object reads a mapping with known keys. A key without a value counts as an empty mapping: all of its
// content may be commented out.
func (l *Loader) Object(path string, n *yaml.Node, known Keys) {
	l.entries(path, n, func(name string, key, value *yaml.Node) {
		read, ok := known[name]
		if !ok {
			l.unknownKey(path, name, key.Line, slices.Sorted(maps.Keys(known)))
			return
		}
		at := Join(path, name)
		l.Places[at] = Place{File: l.File, Line: key.Line}
		read(at, value)
	})
}

// Mapping reads a mapping with known keys.
func (l *Loader) Mapping(known Keys) Decode {
	return func(path string, n *yaml.Node) { l.Object(path, n, known) }
}

// Names reads a mapping whose keys are names chosen by people.
func Names(l *Loader, read func(name, path string, n *yaml.Node)) Decode {
	return func(path string, n *yaml.Node) {
		l.entries(path, n, func(name string, key, value *yaml.Node) {
			if p := NameProblem(name); p != nil {
				l.faults = append(l.faults, Fault{
					File: l.File, Line: key.Line, Path: path, Value: keyName(name), Problem: p.What, Fix: p.Fix,
				})
				return
			}
			at := Join(path, name)
			l.Places[at] = Place{File: l.File, Line: key.Line}
			read(name, at, value)
		})
	}
}

// entries calls each for every entry of a mapping. It refuses keys that are written twice, merged or not text.
func (l *Loader) entries(path string, n *yaml.Node, each func(name string, key, value *yaml.Node)) {
	n, ok := l.Value(path, n)
	if !ok || IsNull(n) {
		return
	}
	if n.Kind != yaml.MappingNode && path == "" {
		l.syntax(n.Line, Problem{"the file is " + typeOf(n) + ", not a mapping", "write lines such as listen: 127.0.0.1:8420"})
		return
	}
	if n.Kind != yaml.MappingNode {
		l.wrongType(path, n, "a mapping", "write one key and its value on each of the next lines, indented")
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		f := Fault{File: l.File, Line: key.Line, Path: path}
		name := key.Value
		switch first, twice := seen[name]; {
		case key.Kind != yaml.ScalarNode || key.Style&yaml.TaggedStyle != 0:
			f.Problem, f.Fix = "has a key that is not plain text", "write keys as plain text"
		case key.Tag == "!!merge":
			f.Problem, f.Fix = "has a merge key, which is not supported", "write the keys out, or use an alias for the whole value"
		case twice:
			f.Problem, f.Fix = fmt.Sprintf("has the key %q twice, first in line %d", keyName(name), first), "keep one"
		}
		if f.Problem != "" {
			l.faults = append(l.faults, f)
			continue
		}
		seen[name] = key.Line
		each(name, key, value)
	}
}

func (l *Loader) unknownKey(path, name string, line int, known []string) {
	f := Fault{File: l.File, Line: line, Path: path, Problem: fmt.Sprintf("has the unknown key %q", keyName(name))}
	if path == "" {
		f.Problem = fmt.Sprintf("unknown key %q", keyName(name))
	}
	if k, ok := Nearest(name, known); ok {
		f.Fix = fmt.Sprintf("did you mean %q?", k)
	} else {
		f.Fix = "the keys here are " + strings.Join(known, ", ")
	}
	l.faults = append(l.faults, f)
}

// keyName returns a key or name in a form that may be printed.
func keyName(name string) string {
	if LooksSecret(name) {
		return Hidden
	}
	return clip(name)
}

func (l *Loader) wrongType(path string, n *yaml.Node, want, fix string) {
	value := ""
	switch {
	case IsNull(n):
		l.Unreadable(path, "", Problem{"has no value", fix + ", or remove the key"})
		return
	case n.Kind == yaml.ScalarNode && want == "text":
		value = n.Value
		fix += ", or put the value in quotes"
	case n.Kind == yaml.ScalarNode:
		value = n.Value
	}
	l.Unreadable(path, value, Problem{"is " + typeOf(n) + ", not " + want, fix})
}

func typeOf(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!bool":
		return "a boolean"
	case n.Tag == "!!int", n.Tag == "!!float":
		return "a number"
	}
	return "text"
}

// HasKey reports whether a mapping has a key. Some keys decide the defaults of others.
func HasKey(n *yaml.Node, key string) bool { return ValueOf(n, key) != nil }

// ValueOf returns the value of a key of a mapping. Nil: the key is absent.
func ValueOf(n *yaml.Node, key string) *yaml.Node {
	if n = behind(n); n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				return behind(n.Content[i+1])
			}
		}
	}
	return nil
}

// behind follows an alias.
func behind(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}
