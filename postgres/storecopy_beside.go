package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-mq/holdfast"
)

// Reader reads the tables of a database, beside the nodes that may use it. What it reads may change between two calls of
// Read. It changes nothing.
type Reader struct{ contents }

// OpenReader opens a database to read it. It keeps no node out.
func OpenReader(ctx context.Context, dsn string) (*Reader, error) {
	r := &Reader{}
	if err := r.look(ctx, dsn); err != nil {
		return nil, errors.Join(explain(err), r.Close())
	}
	return r, nil
}

func (r *Reader) look(ctx context.Context, dsn string) (err error) {
	if r.conn, err = moveConn(ctx, dsn); err != nil {
		return err
	}
	if err := vetServer(ctx, r.conn, true); err != nil {
		return err
	}
	t, err := findTables(ctx, r.conn)
	if err != nil {
		return err
	}
	if t.version == 0 {
		return fmt.Errorf("it does not have Holdfast's tables: %w", holdfast.ErrNotFound)
	}
	return t.known()
}
