package config

import (
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"
)

// section is the keys of a mapping that is read into an S, in the order in which
// they are printed. It is all that is known of them: how they are read, printed
// and checked, what they are by default, and what the guide and the JSON Schema
// tell of them.
type section[S any] []entry[S]

// entry is one key of a section. A nil function does nothing.
type entry[S any] struct {
	name   string
	read   func(l *loader, s *S) decode
	show   func(p printer, s *S) *yaml.Node // nil: the key is left out
	check  func(r *report, path string, s *S)
	reset  func(s *S)                 // to the default
	meets  func(c *Config, s *S) bool // says that the key has a meaning; nil: always
	told   []row                      // by the guide, with paths from here
	schema schema
}

// row is what the guide tells of a key.
type row struct {
	path, doc, values, usual string
}

// key is a key that is always printed.
func key[S, V any](name string, at func(s *S) *V, f form[V], usual V, doc string) entry[S] {
	about := f.schema
	if f.show(usual).Value != "" {
		about = about.with("default", f.json(usual))
	}
	return entry[S]{
		name: name,
		read: func(l *loader, s *S) decode { return f.read(l, at(s)) },
		show: func(_ printer, s *S) *yaml.Node { return f.show(*at(s)) },
		check: func(r *report, path string, s *S) {
			if f.check != nil {
				f.check(r, path, *at(s))
			}
		},
		reset:  func(s *S) { *at(s) = usual },
		told:   []row{{"", doc, f.values, "`" + f.show(usual).Value + "`"}},
		schema: about,
	}
}

// maybe is a key that is printed where it is not zero, which is its default.
func maybe[S any, V comparable](name string, at func(s *S) *V, f form[V], doc string) entry[S] {
	var zero V
	e := key(name, at, f, zero, doc)
	e.show = func(_ printer, s *S) *yaml.Node {
		if *at(s) == zero {
			return nil
		}
		return f.show(*at(s))
	}
	check := e.check
	e.check = func(r *report, path string, s *S) {
		if *at(s) != zero {
			check(r, path, s)
		}
	}
	e.schema = f.schema
	return e.tells("", "none")
}

// tells replaces what the guide tells of the values and the default; empty: it
// stays.
func (e entry[S]) tells(values, usual string) entry[S] {
	e.told = slices.Clone(e.told)
	if values != "" {
		e.told[0].values = values
	}
	if usual != "" {
		e.told[0].usual = usual
	}
	return e
}

// only keeps the key from being printed and checked where it has no meaning.
func (e entry[S]) only(meets func(c *Config, s *S) bool) entry[S] {
	e.meets = meets
	return e
}

// group is a key that holds a mapping.
func group[S, G any](name string, at func(s *S) *G, keys section[G], style yaml.Style) entry[S] {
	return entry[S]{
		name: name,
		read: func(l *loader, s *S) decode { return l.mapping(keys.decoders(l, at(s))) },
		show: func(p printer, s *S) *yaml.Node {
			n := keys.node(p, at(s))
			n.Style = style
			return n
		},
		check:  func(r *report, path string, s *S) { keys.check(r, path, at(s)) },
		reset:  func(s *S) { keys.reset(at(s)) },
		told:   keys.rows(),
		schema: keys.schema(),
	}
}

// unlessEmpty keeps a mapping without entries from being printed.
func (e entry[S]) unlessEmpty() entry[S] {
	show := e.show
	e.show = func(p printer, s *S) *yaml.Node {
		if n := show(p, s); n != nil && len(n.Content) > 0 {
			return n
		}
		return nil
	}
	return e
}

// many is what is read for each name of a mapping whose keys are names.
type many[V any] struct {
	read  func(l *loader, path string, n *yaml.Node) V
	show  func(p printer, v V) *yaml.Node
	check func(r *report, path string, v V)

	place  string // of the name, in the guide
	told   []row
	schema schema
}

// each is many of a section's mappings.
func each[V any](place string, keys section[V]) many[V] {
	return many[V]{
		read: func(l *loader, path string, n *yaml.Node) (v V) {
			keys.reset(&v)
			l.object(path, n, keys.decoders(l, &v))
			return v
		},
		show:  func(p printer, v V) *yaml.Node { return keys.node(p, &v) },
		check: func(r *report, path string, v V) { keys.check(r, path, &v) },
		place: place, told: keys.rows(), schema: keys.schema(),
	}
}

// named is a key that holds a mapping of names.
func named[S, V any](name string, at func(s *S) *map[string]V, of many[V]) entry[S] {
	return entry[S]{
		name: name,
		read: func(l *loader, s *S) decode {
			return l.names(func(name, path string, n *yaml.Node) {
				if *at(s) == nil {
					*at(s) = map[string]V{}
				}
				(*at(s))[name] = of.read(l, path, n)
			})
		},
		show: func(p printer, s *S) *yaml.Node {
			n := mapping()
			for _, name := range slices.Sorted(maps.Keys(*at(s))) {
				add(n, name, of.show(p, (*at(s))[name]))
			}
			return n
		},
		check: func(r *report, path string, s *S) {
			for _, name := range slices.Sorted(maps.Keys(*at(s))) {
				r.checkName(path, name)
				of.check(r, join(path, name), (*at(s))[name])
			}
		},
		told:   below(of.place, of.told),
		schema: schema{"type": []string{"object", "null"}, "additionalProperties": of.schema},
	}
}

// below puts a key before the paths of rows.
func below(name string, rows []row) []row {
	list := slices.Clone(rows)
	for i, r := range list {
		if list[i].path = name; r.path != "" {
			list[i].path += "." + r.path
		}
	}
	return list
}

func (k section[S]) decoders(l *loader, s *S) keys {
	known := make(keys, len(k))
	for _, e := range k {
		known[e.name] = e.read(l, s)
	}
	return known
}

func (k section[S]) node(p printer, s *S) *yaml.Node {
	n := mapping()
	for _, e := range k {
		if e.show != nil && (e.meets == nil || e.meets(p.all, s)) {
			addAll(n, pair{e.name, e.show(p, s)})
		}
	}
	return n
}

func (k section[S]) check(r *report, path string, s *S) {
	for _, e := range k {
		if e.check != nil && (e.meets == nil || e.meets(r.all, s)) {
			e.check(r, join(path, e.name), s)
		}
	}
}

func (k section[S]) reset(s *S) {
	for _, e := range k {
		if e.reset != nil {
			e.reset(s)
		}
	}
}

func (k section[S]) rows() (list []row) {
	for _, e := range k {
		list = append(list, below(e.name, e.told)...)
	}
	return list
}

func (k section[S]) schema() schema {
	properties := schema{}
	for _, e := range k {
		if e.schema == nil {
			continue
		}
		properties[e.name] = e.schema
		if len(e.told) > 0 && e.told[0].path == "" {
			properties[e.name] = e.schema.with("description", Plain(e.told[0].doc))
		}
	}
	return schema{"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false}
}

// pointed is a group that is there or not.
func pointed[S, G any](name string, at func(s *S) **G, keys section[G]) entry[S] {
	return entry[S]{
		name: name,
		read: func(l *loader, s *S) decode {
			return func(path string, n *yaml.Node) {
				g := new(G)
				keys.reset(g)
				*at(s) = g
				l.object(path, n, keys.decoders(l, g))
			}
		},
		show:   func(p printer, s *S) *yaml.Node { return keys.node(p, *at(s)) },
		check:  func(r *report, path string, s *S) { keys.check(r, path, *at(s)) },
		meets:  func(_ *Config, s *S) bool { return *at(s) != nil },
		told:   keys.rows(),
		schema: keys.schema(),
	}
}

// secret is a key that says where a secret is.
func secret[S any](name string, at func(s *S) *Secret, read func(l *loader, path string, n *yaml.Node) Secret, told ...row) entry[S] {
	return entry[S]{
		name: name,
		read: func(l *loader, s *S) decode {
			return func(path string, n *yaml.Node) { *at(s) = read(l, path, n) }
		},
		show:   func(_ printer, s *S) *yaml.Node { return secretNode(*at(s)) },
		told:   told,
		schema: placeSchema(),
	}
}
