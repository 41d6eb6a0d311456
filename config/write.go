package config

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
