package write

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter"
	"github.com/holdfast-mq/holdfast/adapter/sqlwrite"
)

// Open makes the deliverer. The database must not be the node's own: a statement could break the
// node's promises.
func (w *Settings) Open(o adapter.Options) (adapter.Deliverer, error) { return w.open(o) }

func (w *Settings) open(o adapter.Options) (*sqlwrite.Writer, error) {
	dsn := string(w.DSN.Bytes())
	if w.Driver == SQLite {
		theirs, err := os.Stat(dsn)
		ours, errOwn := os.Stat(o.Own)
		if err == nil && errOwn == nil && os.SameFile(theirs, ours) {
			return nil, errors.New("dsn names the database of this node: choose another file")
		}
	}
	return sqlwrite.New(sqlwrite.Config{
		Driver: string(w.Driver), DSN: dsn, Statements: w.Statements, Types: w.Types, Unencrypted: w.Unencrypted, Raw: w.Raw,
		Duplicate: w.Duplicate == DuplicateDelivered, Connections: o.Connections, Excerpt: o.Excerpt,
	})
}

// Probe logs in and writes nothing.
func (w *Settings) Probe(ctx context.Context, timeout time.Duration) (address string, err error) {
	to, err := w.open(adapter.Options{Connections: 1})
	if err != nil {
		return string(w.Driver), &holdfast.Failure{Outcome: holdfast.LaneFault, Code: "settings", Err: err}
	}
	defer to.Close()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return to.Address(), to.Ping(ctx)
}
