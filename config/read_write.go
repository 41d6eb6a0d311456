package config

import "go.yaml.in/yaml/v3"

func (l *loader) write(path string, n *yaml.Node) *Write {
	w := DefaultWrite()
	l.object(path, n, keys{
		"driver": text(l, &w.Driver, "postgres"),
		"dsn":    func(path string, n *yaml.Node) { w.DSN = l.password(path, n) },
		"statements": func(path string, n *yaml.Node) {
			w.Statements = l.named(path, n, "insert into orders (id) values (:_id)")
		},
		"types":     func(path string, n *yaml.Node) { w.Types = l.named(path, n, "integer") },
		"raw":       l.boolean(&w.Raw),
		"duplicate": text(l, &w.Duplicate, "permanent"),

		"unencrypted": l.boolean(&w.Unencrypted),
	})
	return &w
}

// named are the texts of a mapping whose keys are names.
func (l *loader) named(path string, n *yaml.Node, example string) map[string]string {
	texts := map[string]string{}
	l.entries(path, n, func(name string, key, value *yaml.Node) {
		at := join(path, name)
		l.places[at] = place{file: l.file, line: key.Line}
		var s string
		text(l, &s, example)(at, value)
		texts[name] = s
	})
	return texts
}
