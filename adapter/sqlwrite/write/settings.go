package write

import "github.com/holdfast-mq/holdfast/internal/setting"

// Settings are the settings of a database that messages are written to.
type Settings struct {
	Driver     Driver
	DSN        setting.Secret    // where the database is and who writes, in the driver's form
	Statements map[string]string // by endpoint
	Types      map[string]string // of the parameters, by name; PostgreSQL knows its own
	Raw        bool              // payloads may bring SQL of their own
	Duplicate  Duplicate

	Unencrypted bool // allow another machine without TLS
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

// Duplicate says what it means if a unique key exists already.
type Duplicate string

// The meanings.
const (
	DuplicatePermanent Duplicate = "permanent" // the message is parked
	DuplicateDelivered Duplicate = "delivered" // it is the message's own row, from an earlier attempt
)

func keys() setting.Section[Settings] {
	return setting.Section[Settings]{
		setting.Key("driver", func(w *Settings) *Driver { return &w.Driver }, setting.Word(Postgres, SQLite, Postgres, MySQL, SQLServer), "", "Kind of database. `mysql` is MariaDB, too.").
			Tells("", "must be set"),
		setting.Password("dsn", func(w *Settings) *setting.Secret { return &w.DSN },
			setting.Row{Path: "env", Doc: "Variable that holds where the database is and who writes, in the form of the table below.", Values: setting.VariableCell, Usual: "this or `file` must be set"},
			setting.Row{Path: "file", Doc: "File that holds it.", Values: "path", Usual: "this or `env` must be set"}),
		setting.Texts("statements", func(w *Settings) *map[string]string { return &w.Statements }, "insert into orders (id) values (:_id)",
			setting.Row{Path: "ENDPOINT", Doc: "What messages with this endpoint do: one statement, with parameters such as `:amount` and `:order.id`.", Values: "SQL of the database", Usual: "must be set without `raw`"}),
		setting.Texts("types", func(w *Settings) *map[string]string { return &w.Types }, "integer",
			setting.Row{
				Path: "PARAMETER", Doc: "What a parameter is, without its colon; it has the same type in all statements. PostgreSQL says itself what its places are; a type that is given may be narrower.",
				Values: "`text`, `integer`, `decimal(20,6)` and others: [delivery.md](delivery.md#writing-to-a-database)", Usual: "must be set for each parameter of a payload; none for `postgres`",
			}),
		setting.Key("raw", func(w *Settings) *bool { return &w.Raw }, setting.Truth(), false,
			"Payloads may bring SQL of their own. Whoever may submit a message for this destination may then do what the user of `dsn` may."),
		setting.Key("duplicate", func(w *Settings) *Duplicate { return &w.Duplicate }, setting.Word(DuplicatePermanent, DuplicatePermanent, DuplicateDelivered), DuplicatePermanent,
			"What a unique key means that is there already. `permanent`: the message is parked. `delivered`: it is the message's own row, of an attempt whose answer was lost."),
		setting.Key("unencrypted", func(w *Settings) *bool { return &w.Unencrypted }, setting.Truth(), false,
			"`dsn` may name another machine without TLS. Everybody on the way then reads and changes what is written; check, log and health warn of it."),
	}
}
