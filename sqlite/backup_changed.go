package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
)

// ChangedSince reports whether the database differs from a copy that Backup has made of it, as far
// as a restore could tell. A purge of delivered messages is no change. ChangedSince counts the
// waiting messages, and compares nothing else in full. An unreadable copy counts as different.
func (db *DB) ChangedSince(ctx context.Context, copied string) (bool, error) {
	if db.attached != nil {
		return true, fmt.Errorf("compare with %s: %w", copied, errCallers)
	}
	now, err := contentMark(ctx, db.readers)
	if err != nil {
		return true, fmt.Errorf("compare with %s: %w", copied, translate(err))
	}
	if _, err := os.Stat(copied); err != nil {
		return true, nil //nolint:nilerr // without a database nothing can be the same
	}
	// Immutable: nobody writes to a copy, and the look must leave no files beside it.
	other := sql.OpenDB(connector{db.opts.connect, dsn(copied, "query_only(1)") + "&mode=ro&immutable=1"})
	then, err := contentMark(ctx, other)
	if err = errors.Join(err, other.Close()); err != nil {
		return true, ctx.Err()
	}
	return now != then, nil
}

// contentMark reads values of which at least one changes whenever the content does.
func contentMark(ctx context.Context, db *sql.DB) (m [12]sql.NullString, err error) {
	to := make([]any, len(m))
	for i := range m {
		to[i] = &m[i]
	}
	return m, db.QueryRowContext(ctx, queries[changeMark]).Scan(to...)
}
