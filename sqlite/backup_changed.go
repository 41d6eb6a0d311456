package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
)

// ChangedSince says whether the database differs from a copy that Backup has
// made of it, as far as a restore could tell; that delivered messages were
// purged is no change. It counts the messages that wait, and compares nothing else in full.
// A copy that cannot be read is another one.
func (db *DB) ChangedSince(ctx context.Context, copied string) (bool, error) {
	if db.attached != nil {
		return true, fmt.Errorf("compare with %s: %w", copied, errCallers)
	}
	now, err := contentMark(ctx, db.readers)
	if err != nil {
		return true, fmt.Errorf("compare with %s: %w", copied, translate(err))
	}
	if _, err := os.Stat(copied); err != nil {
		return true, nil //nolint:nilerr // nothing is there to be the same
	}
	// Immutable: nobody writes to a copy, and nothing is to be left beside it.
	other := sql.OpenDB(connector{db.opts.connect, dsn(copied, "query_only(1)") + "&mode=ro&immutable=1"})
	then, err := contentMark(ctx, other)
	if err = errors.Join(err, other.Close()); err != nil {
		return true, ctx.Err()
	}
	return now != then, nil
}

// contentMark is what changes whenever the content does.
func contentMark(ctx context.Context, db *sql.DB) (m [11]sql.NullString, err error) {
	to := make([]any, len(m))
	for i := range m {
		to[i] = &m[i]
	}
	return m, db.QueryRowContext(ctx, queries[changeMark]).Scan(to...)
}
