package config

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// shownAddress is what may be told of a text that should be an address.
func shownAddress(text string) string {
	if scheme := schemeOf(text); scheme != "" && strings.Contains(text, "://") {
		return scheme + "://…"
	}
	if strings.ContainsAny(text, "@=") || looksSecret(text) {
		return ""
	}
	return text
}

// storeKey is the address of a database, or where it is.
func storeKey() entry[Config] {
	return entry[Config]{
		name:  "store",
		read:  (*loader).store,
		show:  func(_ printer, c *Config) *yaml.Node { return storeNode(c.Store) },
		meets: func(c, _ *Config) bool { return !c.Store.IsZero() },
		told: []row{
			{"", "Address of a PostgreSQL database in which everything is kept instead, by any number of nodes: [postgres.md](postgres.md).", "`postgres://user@host:5432/database?sslmode=verify-full`", "none: a SQLite database in the folder of `data`"},
			{"env", "Variable that holds the address with its password.", variableCell, "none"},
			{"file", "File that holds it.", "path", "none"},
		},
		schema: schema{"anyOf": []schema{{"type": "string"}, placeSchema()}},
	}
}

// store reads the address of a database, or where it is.
func (l *loader) store(c *Config) decode {
	return func(path string, n *yaml.Node) {
		value, ok := l.value(path, n)
		switch {
		case !ok:
		case value.Kind == yaml.MappingNode:
			c.Store = l.storeElsewhere(path, value)
		case value.Kind != yaml.ScalarNode || value.Tag != "!!str":
			l.unreadable(path, "", problem{"is not the address of a database", addressFix + ", or remove the key"})
		default:
			if c.Store = l.address(value.Value); c.Store.HasPassword() {
				l.warn(path, "", problem{"holds a password, which everybody sees who may read this file", storeFix})
			}
		}
	}
}

func (l *loader) storeElsewhere(path string, n *yaml.Node) Database {
	var ref reference
	l.object(path, n, keys{"env": l.hiddenText(&ref.env, storeFix), "file": l.hiddenText(&ref.file, storeFix)})
	f, ok := l.lookUp(path, ref, wanted{"the address of the database", "names neither a variable nor a file", storeFix, addressFix})
	if !ok {
		l.bad[path] = true // the checks need not look
		return Database{}
	}
	d, p := parseDatabase(f.text)
	if p != nil {
		l.wrongContent(f, problem{"the text " + p.what, p.fix})
		l.bad[path] = true
		return Database{}
	}
	d.env, d.at = f.env, f.file
	return d
}

// address reads what was written in the place itself.
func (l *loader) address(text string) Database {
	d, p := parseDatabase(text)
	if p != nil {
		l.unreadable("store", shownAddress(text), *p)
	}
	return d
}

// checkStore is about the database, and about what only a file has.
func (r *report) checkStore(c *Config) {
	const own = "a PostgreSQL database is not Holdfast's own file"
	switch {
	case r.bad["store"]:
		return
	case c.Store.IsZero():
		if r.given("lease") {
			r.fault("lease", FormatDuration(c.Lease), problem{"has no meaning without store: nobody shares a file", "remove it"})
		}
		return
	}
	if r.given("backup") && c.Backup.Every != Never {
		r.fault("backup", "", problem{"has no meaning with store: " + own, "remove it, and back the database up with its own tools, such as pg_basebackup or pg_dump"})
	}
	if r.given("limits.reserve") && c.Limits.Reserve != 0 {
		r.fault("limits.reserve", FormatSize(c.Limits.Reserve), problem{"has no meaning with store: " + own, "remove it"})
	}
	if c.Durability == Normal {
		r.fault("durability", string(c.Durability), problem{"has no meaning with store: every commit there is made with synchronous_commit on", "remove it, or write full"})
	}
	if r.given("data") {
		r.warn("data", c.Data, problem{"is not used: store names a database, in which everything is kept", "remove it, or store"})
	}
	r.checkStoreTLS(c)
}

// plainStore says what is wrong with how the database is reached; empty: nothing.
func (c *Config) plainStore() string {
	if c.Store.IsZero() || !c.Store.Remote() || c.Store.Encrypted() {
		return ""
	}
	with := "without sslmode"
	if mode := c.Store.SSLMode(); mode != "" {
		with = "with sslmode=" + mode
	}
	return "names another machine " + with + ", so that anybody on the way can read and change what is stored"
}

func (r *report) checkStoreTLS(c *Config) {
	if c.plainStore() == "" {
		return
	}
	if c.StoreUnencrypted {
		return // warned of with all that is given up
	}
	r.fault("store", c.Store.String(), problem{c.plainStore(), "add sslmode=verify-full, or storeUnencrypted: true if you trust everybody on that network"})
}

const storeFix = "write {env: NAME} for a variable or {file: PATH} for a file that holds the whole address"
