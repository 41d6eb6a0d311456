package setting

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Section holds the keys of a mapping that is read into an S, in the order in which they are printed. It
// holds everything that is known about them: how they are read, printed and checked, their defaults, and the
// texts of the guide and the JSON Schema.
type Section[S any] []Entry[S]

// Entry is one key of a section. A nil function does nothing.
type Entry[S any] struct {
	Name   string
	Read   func(l *Loader, s *S) Decode
	Show   func(p Printer, s *S) *yaml.Node // nil: the key is left out
	Check  func(r *Report, path string, s *S)
	Reset  func(s *S)                // sets the default
	Meets  func(root any, s *S) bool // reports whether the key has a meaning; nil: always
	Told   []Row                     // rows of the guide, with paths relative to this key
	Schema Schema
}

// Row is one row of the guide: a key and its description.
type Row struct {
	Path, Doc, Values, Usual string
}

// Key is a key that is always printed.
func Key[S, V any](name string, at func(s *S) *V, f Form[V], usual V, doc string) Entry[S] {
	about := f.Schema
	if f.Show(usual).Value != "" {
		about = about.With("default", f.json(usual))
	}
	return Entry[S]{
		Name: name,
		Read: func(l *Loader, s *S) Decode { return f.Read(l, at(s)) },
		Show: func(_ Printer, s *S) *yaml.Node { return f.Show(*at(s)) },
		Check: func(r *Report, path string, s *S) {
			if f.Check != nil {
				f.Check(r, path, *at(s))
			}
		},
		Reset:  func(s *S) { *at(s) = usual },
		Told:   []Row{{"", doc, f.Values, "`" + f.Show(usual).Value + "`"}},
		Schema: about,
	}
}

// Maybe is a key whose default is zero. It is printed if it is not zero.
func Maybe[S any, V comparable](name string, at func(s *S) *V, f Form[V], doc string) Entry[S] {
	var zero V
	e := Key(name, at, f, zero, doc)
	e.Show = func(_ Printer, s *S) *yaml.Node {
		if *at(s) == zero {
			return nil
		}
		return f.Show(*at(s))
	}
	check := e.Check
	e.Check = func(r *Report, path string, s *S) {
		if *at(s) != zero {
			check(r, path, s)
		}
	}
	e.Schema = f.Schema
	return e.Tells("", "none")
}

// Tells replaces the guide's texts for the values and the default. An empty text keeps the old one.
func (e Entry[S]) Tells(values, usual string) Entry[S] {
	e.Told = slices.Clone(e.Told)
	if values != "" {
		e.Told[0].Values = values
	}
	if usual != "" {
		e.Told[0].Usual = usual
	}
	return e
}

// Only keeps the key from being printed and checked if it has no meaning.
func (e Entry[S]) Only(meets func(root any, s *S) bool) Entry[S] {
	e.Meets = meets
	return e
}

// Group is a key that holds a mapping.
func Group[S, G any](name string, at func(s *S) *G, keys Section[G], style yaml.Style) Entry[S] {
	return Entry[S]{
		Name: name,
		Read: func(l *Loader, s *S) Decode { return l.Mapping(keys.Decoders(l, at(s))) },
		Show: func(p Printer, s *S) *yaml.Node {
			n := keys.Node(p, at(s))
			n.Style = style
			return n
		},
		Check:  func(r *Report, path string, s *S) { keys.Check(r, path, at(s)) },
		Reset:  func(s *S) { keys.Reset(at(s)) },
		Told:   keys.Rows(),
		Schema: keys.Schema(),
	}
}

// UnlessEmpty keeps a mapping without entries from being printed.
func (e Entry[S]) UnlessEmpty() Entry[S] {
	show := e.Show
	e.Show = func(p Printer, s *S) *yaml.Node {
		if n := show(p, s); n != nil && len(n.Content) > 0 {
			return n
		}
		return nil
	}
	return e
}

// Many describes the values of a mapping whose keys are names.
type Many[V any] struct {
	Read  func(l *Loader, path string, n *yaml.Node) V
	Show  func(p Printer, v V) *yaml.Node
	Check func(r *Report, path string, v V)

	Place  string // stands for the name, in the guide
	Told   []Row
	Schema Schema
}

// Each is a Many whose values are mappings of a section.
func Each[V any](place string, keys Section[V]) Many[V] {
	return Many[V]{
		Read: func(l *Loader, path string, n *yaml.Node) (v V) {
			keys.Reset(&v)
			l.Object(path, n, keys.Decoders(l, &v))
			return v
		},
		Show:  func(p Printer, v V) *yaml.Node { return keys.Node(p, &v) },
		Check: func(r *Report, path string, v V) { keys.Check(r, path, &v) },
		Place: place, Told: keys.Rows(), Schema: keys.Schema(),
	}
}

// Named is a key that holds a mapping of names.
func Named[S, V any](name string, at func(s *S) *map[string]V, of Many[V]) Entry[S] {
	return Entry[S]{
		Name: name,
		Read: func(l *Loader, s *S) Decode {
			return Names(l, func(name, path string, n *yaml.Node) {
				if *at(s) == nil {
					*at(s) = map[string]V{}
				}
				(*at(s))[name] = of.Read(l, path, n)
			})
		},
		Show: func(p Printer, s *S) *yaml.Node {
			n := Mapping()
			for _, name := range slices.Sorted(maps.Keys(*at(s))) {
				Add(n, name, of.Show(p, (*at(s))[name]))
			}
			return n
		},
		Check: func(r *Report, path string, s *S) {
			for _, name := range slices.Sorted(maps.Keys(*at(s))) {
				r.checkName(path, name)
				of.Check(r, Join(path, name), (*at(s))[name])
			}
		},
		Told:   below(of.Place, of.Told),
		Schema: Schema{"type": []string{"object", "null"}, "additionalProperties": of.Schema},
	}
}

// below prefixes the paths of rows with a key.
func below(name string, rows []Row) []Row {
	list := slices.Clone(rows)
	for i, r := range list {
		if list[i].Path = name; r.Path != "" {
			list[i].Path += "." + r.Path
		}
	}
	return list
}

// Decoders returns functions that read the keys into s.
func (k Section[S]) Decoders(l *Loader, s *S) Keys {
	known := make(Keys, len(k))
	for _, e := range k {
		known[e.Name] = e.Read(l, s)
	}
	return known
}

// Node shows s.
func (k Section[S]) Node(p Printer, s *S) *yaml.Node {
	n := Mapping()
	for _, e := range k {
		if e.Show != nil && (e.Meets == nil || e.Meets(p.Root, s)) {
			addAll(n, Pair{e.Name, e.Show(p, s)})
		}
	}
	return n
}

// Check finds the faults of s that concern one key each.
func (k Section[S]) Check(r *Report, path string, s *S) {
	for _, e := range k {
		if e.Check != nil && (e.Meets == nil || e.Meets(r.Root, s)) {
			e.Check(r, Join(path, e.Name), s)
		}
	}
}

// Reset gives s its defaults.
func (k Section[S]) Reset(s *S) {
	for _, e := range k {
		if e.Reset != nil {
			e.Reset(s)
		}
	}
}

// Rows returns the rows of the guide.
func (k Section[S]) Rows() (list []Row) {
	for _, e := range k {
		list = append(list, below(e.Name, e.Told)...)
	}
	return list
}

// Schema returns the JSON Schema of the mapping.
func (k Section[S]) Schema() Schema {
	properties := Schema{}
	for _, e := range k {
		if e.Schema == nil {
			continue
		}
		properties[e.Name] = e.Schema
		if len(e.Told) > 0 && e.Told[0].Path == "" {
			properties[e.Name] = e.Schema.With("description", Plain(e.Told[0].Doc))
		}
	}
	return Schema{"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false}
}

// Pointed is a Group that may be absent.
func Pointed[S, G any](name string, at func(s *S) **G, keys Section[G]) Entry[S] {
	return Entry[S]{
		Name: name,
		Read: func(l *Loader, s *S) Decode {
			return func(path string, n *yaml.Node) {
				g := new(G)
				keys.Reset(g)
				*at(s) = g
				l.Object(path, n, keys.Decoders(l, g))
			}
		},
		Show:   func(p Printer, s *S) *yaml.Node { return keys.Node(p, *at(s)) },
		Check:  func(r *Report, path string, s *S) { keys.Check(r, path, *at(s)) },
		Meets:  func(_ any, s *S) bool { return *at(s) != nil },
		Told:   keys.Rows(),
		Schema: keys.Schema(),
	}
}

// SecretKey is a key that says where a secret comes from.
func SecretKey[S any](name string, at func(s *S) *Secret, read func(l *Loader, path string, n *yaml.Node) Secret, told ...Row) Entry[S] {
	return Entry[S]{
		Name: name,
		Read: func(l *Loader, s *S) Decode {
			return func(path string, n *yaml.Node) { *at(s) = read(l, path, n) }
		},
		Show:   func(_ Printer, s *S) *yaml.Node { return SecretNode(*at(s)) },
		Told:   told,
		Schema: PlaceSchema(),
	}
}

// Password is the key of a secret that somebody else has made.
func Password[S any](name string, at func(s *S) *Secret, told ...Row) Entry[S] {
	return SecretKey(name, at, (*Loader).password, told...)
}

var linked = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// Plain returns the text of a Key without its Markdown. Code is shown as it is, and links without their targets.
func Plain(text string) string {
	return strings.ReplaceAll(linked.ReplaceAllString(text, "$1"), "`", "")
}
