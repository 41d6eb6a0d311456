package setting

import (
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Texts is a key that holds a mapping of texts. It is printed if the mapping is not empty.
func Texts[S any](name string, at func(s *S) *map[string]string, example string, told Row) Entry[S] {
	return Entry[S]{
		Name: name,
		Read: func(l *Loader, s *S) Decode {
			return func(path string, n *yaml.Node) { *at(s) = l.named(path, n, example) }
		},
		Show: func(_ Printer, s *S) *yaml.Node {
			if len(*at(s)) == 0 {
				return nil
			}
			n := Mapping()
			for _, name := range slices.Sorted(maps.Keys(*at(s))) {
				Add(n, name, Str((*at(s))[name]))
			}
			return n
		},
		Told:   []Row{told},
		Schema: Schema{"type": []string{"object", "null"}, "additionalProperties": Schema{"type": "string"}},
	}
}

// named returns the texts of a mapping whose keys are names.
func (l *Loader) named(path string, n *yaml.Node, example string) map[string]string {
	texts := map[string]string{}
	l.entries(path, n, func(name string, key, value *yaml.Node) {
		at := Join(path, name)
		l.Places[at] = Place{File: l.File, Line: key.Line}
		var s string
		Text(l, &s, example)(at, value)
		texts[name] = s
	})
	return texts
}

// Address is a key that holds a URL. Parts of the URL that may be a secret are not printed.
func Address[S any](name string, at func(s *S) *string, example, doc string) Entry[S] {
	e := Key(name, at, Words[string](example, nil), "", doc)
	e.Show = func(p Printer, s *S) *yaml.Node { return Str(p.url(*at(s))) }
	return e.Tells("`http://…`, `https://…`", "must be set")
}
