package sqlwrite

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/sqltext"
)

// Config says how a database is written to. It must not be changed after New.
type Config struct {
	Driver string // sqlite, postgres, mysql (MariaDB too) or sqlserver
	// DSN says where the database is and who writes. The whole of it is secret.
	//
	//	sqlite:    absolute path of the file, which must exist
	//	postgres:  postgres://user:password@host:5432/database?sslmode=verify-full
	//	mysql:     user:password@tcp(host:3306)/database?tls=true
	//	sqlserver: sqlserver://user:password@host:1433?database=name
	DSN string

	Statements map[string]string // by endpoint; each is one statement with :names
	// Types are the types of the parameters, by name: text, integer, decimal(20,6) and so on.
	// PostgreSQL knows the types of its parameters; a type given here may be narrower. In other
	// databases each parameter that a payload fills needs a type.
	Types map[string]string
	// Raw also accepts {"sql": "…", "params": {…}} from a message whose endpoint names no
	// statement. Everyone who may submit such a message may then do what the DSN's user may.
	Raw bool
	// Duplicate treats a unique key that exists already as success: it is the message's own row,
	// from an attempt whose answer was lost. If false, it is a permanent failure, as only the
	// operator knows what the key means.
	Duplicate bool

	// Unencrypted allows writing to another machine without TLS: everyone on the way can read and
	// change the data.
	Unencrypted bool

	Connections int // most connections at one time; zero: 20
	Excerpt     int // bytes of the database's error text that people see; zero: none. The text may quote values
}

func (c *Config) check() (map[string]sqltext.Statement, error) {
	var faults []error
	fault := func(field, value, problem string) {
		faults = append(faults, &holdfast.FieldError{Field: field, Value: value, Problem: problem})
	}
	if _, ok := dialects()[c.Driver]; !ok {
		fault("Driver", c.Driver, "must be one of "+strings.Join(slices.Sorted(maps.Keys(dialects())), ", "))
		return nil, errors.Join(faults...) // without a valid driver the rest has no meaning
	}
	if c.DSN == "" {
		fault("DSN", "", "must not be empty")
	}
	if len(c.Statements) == 0 && !c.Raw {
		fault("Statements", "", "are missing, and payloads may not bring statements: name one, or set Raw")
	}
	if c.Connections < 0 {
		fault("Connections", fmt.Sprint(c.Connections), "must not be negative")
	}
	types := map[string]sqltext.Type{}
	for _, name := range slices.Sorted(maps.Keys(c.Types)) {
		t, err := sqltext.ParseType(sqltext.Dialect(c.Driver), c.Types[name])
		if err != nil {
			fault("Types", name, err.Error())
		}
		types[name] = t
	}
	read := map[string]sqltext.Statement{}
	for _, name := range slices.Sorted(maps.Keys(c.Statements)) {
		s, err := sqltext.Parse(sqltext.Dialect(c.Driver), c.Statements[name], types)
		if err != nil {
			fault("Statements", name, err.Error())
			continue
		}
		if missing := s.Untyped(); dialects()[c.Driver].declared && len(missing) > 0 {
			fault("Types", missing[0], "is missing, and statement "+name+" takes it: name its type")
		}
		read[name] = s
	}
	return read, errors.Join(faults...)
}
