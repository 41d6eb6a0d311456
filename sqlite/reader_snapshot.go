package sqlite

import (
	"context"
	"database/sql"
	"errors"
)

// snapshot is a reader's transaction, for queries that must agree. It begins with SQL text, as
// shared.beginRead does: the caller's handle may begin transactions with the right to write, and
// Get inside Do would wait for Do.
type snapshot struct{ *sql.Conn }

func (db *DB) snapshot(ctx context.Context) (*snapshot, error) {
	if err := db.readable(ctx); err != nil {
		return nil, err
	}
	via, err := db.readers.Conn(ctx)
	if err != nil {
		return nil, db.noted(err)
	}
	s := &snapshot{via}
	if _, err := via.ExecContext(ctx, statements[beginProbe]); err != nil {
		return nil, errors.Join(db.noted(err), s.end())
	}
	return s, nil
}

// end gives the connection back. If BEGIN has failed there is nothing to roll back.
func (s *snapshot) end() error {
	_, _ = s.ExecContext(context.Background(), statements[rollbackNow])
	return s.Close()
}

// each calls row for each row of one of the readers' queries.
func (s *snapshot) each(ctx context.Context, q query, row func(found *sql.Rows) error, args ...any) error {
	return s.eachOf(ctx, queries[q], row, args...)
}

// eachOf calls row for each row of a query.
func (s *snapshot) eachOf(ctx context.Context, text string, row func(found *sql.Rows) error, args ...any) (err error) {
	found, err := s.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		if err := row(found); err != nil {
			return err
		}
	}
	return found.Err()
}
