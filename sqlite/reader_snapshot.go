package sqlite

import (
	"context"
	"database/sql"
	"errors"
)

// snapshot is a reader's transaction, for queries that must agree. On the caller's handle it begins with
// SQL text, as shared.beginRead does: the handle may begin transactions with the right to write, and
// Get inside Do would wait for Do.
type snapshot struct {
	*sql.Conn

	tx       *sql.Tx // nil: on the caller's handle
	prepared *prepared
}

// snapshot begins a reader's transaction. The queries that it names are frequent, and stay prepared.
func (db *DB) snapshot(ctx context.Context, often ...query) (*snapshot, error) {
	if err := db.readable(ctx); err != nil {
		return nil, err
	}
	s := &snapshot{prepared: &db.prepared}
	for _, q := range often { // before it has a connection: with all of them taken, it would wait for itself
		if db.attached != nil {
			break
		}
		if _, err := s.prepared.of(ctx, db.readers, queries[q]); err != nil {
			return nil, db.noted(err)
		}
	}
	var err error
	if s.Conn, err = db.readers.Conn(ctx); err != nil {
		return nil, db.noted(err)
	}
	if db.attached != nil {
		_, err = s.ExecContext(ctx, statements[beginProbe])
	} else {
		s.tx, err = s.BeginTx(ctx, nil)
	}
	if err != nil {
		return nil, errors.Join(db.noted(err), s.end())
	}
	return s, nil
}

// end gives the connection back. If BEGIN has failed there is nothing to roll back.
func (s *snapshot) end() error {
	if s.tx != nil {
		_ = s.tx.Rollback()
	} else {
		_, _ = s.ExecContext(context.Background(), statements[rollbackNow])
	}
	return s.Close()
}

// known returns the query if it is prepared. The statements of the caller's handle belong to the caller.
func (s *snapshot) known(text string) (q ready, ok bool) {
	if s.tx == nil {
		return q, false
	}
	return s.prepared.known(text)
}

// QueryContext runs a query, the prepared one if there is one.
func (s *snapshot) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	if q, ok := s.known(text); ok {
		return s.tx.StmtContext(ctx, q.Stmt).QueryContext(ctx, args...) //nolint:sqlclosecheck // the transaction closes it
	}
	return s.Conn.QueryContext(ctx, text, args...)
}

// QueryRowContext is QueryContext for a query of at most one row.
func (s *snapshot) QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row {
	if q, ok := s.known(text); ok {
		return s.tx.StmtContext(ctx, q.Stmt).QueryRowContext(ctx, args...) //nolint:sqlclosecheck // the transaction closes it
	}
	return s.Conn.QueryRowContext(ctx, text, args...)
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
