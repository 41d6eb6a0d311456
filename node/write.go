package node

import (
	"errors"
	"maps"
	"os"
	"slices"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/sqlwrite"
	"github.com/holdfast-mq/holdfast/config"
)

// newWriter makes the way to a destination that is a database. It must not be
// the node's own: a statement could change what has been promised.
func newWriter(d config.Destination, own string) (*sqlwrite.Writer, error) {
	w := d.Write
	dsn := string(w.DSN.Bytes())
	if w.Driver == config.SQLite {
		theirs, err := os.Stat(dsn)
		ours, errOwn := os.Stat(own)
		if err == nil && errOwn == nil && os.SameFile(theirs, ours) {
			return nil, errors.New("dsn names the database of this node: choose another file")
		}
	}
	return sqlwrite.New(sqlwrite.Config{
		Driver: string(w.Driver), DSN: dsn, Statements: w.Statements, Types: w.Types, Unencrypted: w.Unencrypted, Raw: w.Raw,
		Duplicate: w.Duplicate == config.DuplicateDelivered, Connections: d.Concurrency, Excerpt: shownOfRefusal,
	})
}

// checkWrites looks at each way to a database as a start would make it, and
// connects to none. What is wrong stands in the place of its dsn.
func checkWrites(c *config.Config) (faults []config.Fault) {
	for _, name := range slices.Sorted(maps.Keys(c.Destinations)) {
		d := c.Destinations[name]
		if d.Write == nil {
			continue
		}
		w, err := newWriter(d, database(c.Data))
		if err == nil {
			w.Close()
			continue
		}
		fault := config.Fault{Path: "destinations." + name + ".write.dsn", Problem: err.Error(), Err: err}
		if field, ok := errors.AsType[*holdfast.FieldError](err); ok {
			fault.Problem = field.Problem
		}
		faults = append(faults, fault)
	}
	return faults
}
