package node

import (
	"errors"
	"os"

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
		Driver: string(w.Driver), DSN: dsn, Statements: w.Statements, Types: w.Types, Raw: w.Raw,
		Duplicate: w.Duplicate == config.DuplicateDelivered, Connections: d.Concurrency, Excerpt: shownOfRefusal,
	})
}
