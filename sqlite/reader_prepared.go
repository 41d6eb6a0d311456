package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"sync"
)

// prepared are queries of the readers that are asked for each request, each
// attempt or every few seconds: to prepare one takes longer than to run it.
type prepared struct {
	mu    sync.Mutex
	stmts [queryCount]*sql.Stmt // they end with the readers' connections
}

func (p *prepared) query(ctx context.Context, readers *sql.DB, q query, args []any) (*sql.Rows, error) {
	p.mu.Lock()
	s := p.stmts[q]
	if s == nil {
		var err error
		if s, err = readers.PrepareContext(ctx, queries[q]); err != nil {
			p.mu.Unlock()
			return nil, err
		}
		p.stmts[q] = s
	}
	p.mu.Unlock()
	return s.QueryContext(ctx, args...)
}

// often is query for what is asked often: the query is kept prepared, but on the
// caller's own handle, whose statements are the caller's.
func (db *DB) often(ctx context.Context, q query, args ...any) (*sql.Rows, error) {
	if db.attached != nil {
		return db.query(ctx, q, args...)
	}
	if err := db.readable(ctx); err != nil {
		return nil, err
	}
	rows, err := db.prepared.query(ctx, db.readers, q, args)
	return rows, db.noted(err)
}

// oftenOne is often for a query of one row, or none: sql.ErrNoRows.
func (db *DB) oftenOne(ctx context.Context, q query, args []any, dest ...any) (err error) {
	rows, err := db.often(ctx, q, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if !rows.Next() {
		return cmp.Or(db.noted(rows.Err()), sql.ErrNoRows)
	}
	return rows.Scan(dest...)
}
