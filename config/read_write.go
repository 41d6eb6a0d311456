package config

import "go.yaml.in/yaml/v3"

func (l *loader) write(path string, n *yaml.Node) *Write {
	w := DefaultWrite()
	l.object(path, n, keys{
		"driver":     text(l, &w.Driver, "postgres"),
		"dsn":        func(path string, n *yaml.Node) { w.DSN = l.password(path, n) },
		"statements": func(path string, n *yaml.Node) { w.Statements = l.statements(path, n) },
		"raw":        l.boolean(&w.Raw),
		"duplicate":  text(l, &w.Duplicate, "permanent"),
	})
	return &w
}

func (l *loader) statements(path string, n *yaml.Node) map[string]string {
	statements := map[string]string{}
	l.entries(path, n, func(name string, key, value *yaml.Node) {
		at := join(path, name)
		l.places[at] = place{file: l.file, line: key.Line}
		var s string
		text(l, &s, "insert into orders (id) values (:_id)")(at, value)
		statements[name] = s
	})
	return statements
}
