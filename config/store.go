package config

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/holdfast-mq/holdfast/internal/setting"
)

// shownAddress returns what may be shown of a text that should be an address.
func shownAddress(text string) string {
	if scheme := setting.SchemeOf(text); scheme != "" && strings.Contains(text, "://") {
		return scheme + "://…"
	}
	if strings.ContainsAny(text, "@=") || setting.LooksSecret(text) {
		return ""
	}
	return text
}

// storeKey returns the key for the address of a database, or for where the address is.
func storeKey() setting.Entry[Config] {
	return setting.Entry[Config]{
		Name:  "store",
		Read:  store,
		Show:  func(_ setting.Printer, c *Config) *yaml.Node { return storeNode(c.Store) },
		Meets: func(_ any, c *Config) bool { return !c.Store.IsZero() },
		Told: []setting.Row{
			{Doc: "Address of a PostgreSQL database that keeps everything instead, for any number of nodes: [postgres.md](postgres.md).", Values: "`postgres://user@host:5432/database?sslmode=verify-full`", Usual: "none: a SQLite database in the folder of `data`"},
			{Path: "env", Doc: "Variable that holds the address with its password.", Values: setting.VariableCell, Usual: "none"},
			{Path: "file", Doc: "File that holds it.", Values: "path", Usual: "none"},
		},
		Schema: setting.Schema{"anyOf": []setting.Schema{{"type": "string"}, setting.PlaceSchema()}},
	}
}

// store reads the address of a database, or where the address is.
func store(l *setting.Loader, c *Config) setting.Decode {
	return func(path string, n *yaml.Node) {
		value, ok := l.Value(path, n)
		switch {
		case !ok:
		case value.Kind == yaml.MappingNode:
			c.Store = storeElsewhere(l, path, value)
		case value.Kind != yaml.ScalarNode || value.Tag != "!!str":
			l.Unreadable(path, "", setting.Problem{What: "is not the address of a database", Fix: addressFix + ", or remove the key"})
		default:
			if c.Store = address(l, value.Value); c.Store.HasPassword() {
				l.Warn(path, "", setting.Problem{What: "holds a password, which everybody who may read this file can see", Fix: storeFix})
			}
		}
	}
}

func storeElsewhere(l *setting.Loader, path string, n *yaml.Node) Database {
	var ref setting.Reference
	l.Object(path, n, setting.Keys{"env": setting.HiddenText(l, &ref.Env, storeFix), "file": setting.HiddenText(l, &ref.File, storeFix)})
	f, ok := l.LookUp(path, ref, setting.Wanted{What: "the address of the database", None: "names neither a variable nor a file", Fix: storeFix, MakeFix: addressFix})
	if !ok {
		l.Bad[path] = true // the checks need not look at it
		return Database{}
	}
	d, p := parseDatabase(f.Text)
	if p != nil {
		l.WrongContent(f, setting.Problem{What: "the text " + p.What, Fix: p.Fix})
		l.Bad[path] = true
		return Database{}
	}
	d.env, d.at = f.Env, f.File
	return d
}

// address parses an address that stands in the configuration itself.
func address(l *setting.Loader, text string) Database {
	d, p := parseDatabase(text)
	if p != nil {
		l.Unreadable("store", shownAddress(text), *p)
	}
	return d
}

// checkStore checks the database, and settings that only a file store has.
func checkStore(r *setting.Report, c *Config) {
	const own = "a PostgreSQL database is not Holdfast's own file"
	switch {
	case r.Bad["store"]:
		return
	case c.Store.IsZero():
		if r.Given("lease") {
			r.Fault("lease", setting.FormatDuration(c.Lease), setting.Problem{What: "has no meaning without store: nobody shares a file", Fix: "remove it"})
		}
		return
	}
	if r.Given("backup") && c.Backup.Every != Never {
		r.Fault("backup", "", setting.Problem{What: "has no meaning with store: " + own, Fix: "remove it, and back the database up with its own tools, such as pg_basebackup or pg_dump"})
	}
	if r.Given("limits.reserve") && c.Limits.Reserve != 0 {
		r.Fault("limits.reserve", setting.FormatSize(c.Limits.Reserve), setting.Problem{What: "has no meaning with store: " + own, Fix: "remove it"})
	}
	if c.Durability == Normal {
		r.Fault("durability", string(c.Durability), setting.Problem{What: "has no meaning with store: every commit there is made with synchronous_commit on", Fix: "remove it, or write full"})
	}
	if r.Given("data") {
		r.Warn("data", c.Data, setting.Problem{What: "is not used: store names a database, which keeps everything", Fix: "remove it, or store"})
	}
	checkStoreTLS(r, c)
}

// plainStore says what is wrong with the way to the database; empty: nothing.
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

func checkStoreTLS(r *setting.Report, c *Config) {
	if c.plainStore() == "" {
		return
	}
	if c.StoreUnencrypted {
		return // another warning covers all safeguards that are given up
	}
	r.Fault("store", c.Store.String(), setting.Problem{What: c.plainStore(), Fix: "add sslmode=verify-full, or storeUnencrypted: true if you trust everybody on that network"})
}

const storeFix = "write {env: NAME} for a variable or {file: PATH} for a file that holds the whole address"
