package config

import (
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Write is a database that messages are written to, where a destination is
// neither a peer nor a call.
type Write struct {
	Driver     Driver
	DSN        Secret            // where the database is and who writes, in the driver's form
	Statements map[string]string // by endpoint
	Types      map[string]string // of their parameters, by name; PostgreSQL knows its own
	Raw        bool              // payloads may bring SQL of their own
	Duplicate  Duplicate

	Unencrypted bool // also to another machine without TLS
}

// Driver is a kind of database.
type Driver string

// The drivers.
const (
	SQLite    Driver = "sqlite"
	Postgres  Driver = "postgres"
	MySQL     Driver = "mysql" // and MariaDB
	SQLServer Driver = "sqlserver"
)

// Duplicate says what a unique key means that is there already.
type Duplicate string

// The meanings.
const (
	DuplicatePermanent Duplicate = "permanent" // the message is parked
	DuplicateDelivered Duplicate = "delivered" // it is the message's own row, of an earlier attempt
)

// DefaultWrite returns a database destination that lacks its driver, its DSN
// and its statements.
func DefaultWrite() Write { return Write{Duplicate: DuplicatePermanent} }

func writeKey() entry[Destination] {
	return pointed("write", func(d *Destination) **Write { return &d.Write }, writeKeys())
}

func writeKeys() section[Write] {
	return section[Write]{
		key("driver", func(w *Write) *Driver { return &w.Driver }, word(Postgres, SQLite, Postgres, MySQL, SQLServer), "", "Kind of database. `mysql` is MariaDB, too.").
			tells("", "must be set"),
		password("dsn", func(w *Write) *Secret { return &w.DSN },
			row{"env", "Variable that holds where the database is and who writes, in the form of the table below.", variableCell, "this or `file` must be set"},
			row{"file", "File that holds it.", "path", "this or `env` must be set"}),
		texts("statements", func(w *Write) *map[string]string { return &w.Statements }, "insert into orders (id) values (:_id)",
			row{"ENDPOINT", "What messages with this endpoint do: one statement, with parameters such as `:amount` and `:order.id`.", "SQL of the database", "must be set without `raw`"}),
		texts("types", func(w *Write) *map[string]string { return &w.Types }, "integer",
			row{
				"PARAMETER", "What a parameter is, without its colon; it has the same type in all statements. PostgreSQL says itself what its places are; a type that is given may be narrower.",
				"`text`, `integer`, `decimal(20,6)` and others: [delivery.md](delivery.md#writing-to-a-database)", "must be set for each parameter of a payload; none for `postgres`",
			}),
		key("raw", func(w *Write) *bool { return &w.Raw }, truth(), false,
			"Payloads may bring SQL of their own. Whoever may submit a message for this destination may then do what the user of `dsn` may."),
		key("duplicate", func(w *Write) *Duplicate { return &w.Duplicate }, word(DuplicatePermanent, DuplicatePermanent, DuplicateDelivered), DuplicatePermanent,
			"What a unique key means that is there already. `permanent`: the message is parked. `delivered`: it is the message's own row, of an attempt whose answer was lost."),
		key("unencrypted", func(w *Write) *bool { return &w.Unencrypted }, truth(), false,
			"`dsn` may name another machine without TLS. Everybody on the way then reads and changes what is written; check, log and health warn of it."),
	}
}

// texts is a key that holds a mapping of texts, and is printed where it has some.
func texts[S any](name string, at func(s *S) *map[string]string, example string, told row) entry[S] {
	return entry[S]{
		name: name,
		read: func(l *loader, s *S) decode {
			return func(path string, n *yaml.Node) { *at(s) = l.named(path, n, example) }
		},
		show: func(_ printer, s *S) *yaml.Node {
			if len(*at(s)) == 0 {
				return nil
			}
			n := mapping()
			for _, name := range slices.Sorted(maps.Keys(*at(s))) {
				add(n, name, str((*at(s))[name]))
			}
			return n
		},
		told:   []row{told},
		schema: schema{"type": []string{"object", "null"}, "additionalProperties": schema{"type": "string"}},
	}
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
