package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"sync"
)

// prepared are queries of the readers that are asked for each request or each
// attempt: to prepare one takes longer than to run it.
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

// often runs a query that is kept prepared, but on the caller's own handle,
// whose statements are the caller's.
func (db *DB) often(ctx context.Context, q query, args ...any) (*sql.Rows, error) {
	if db.attached != nil {
		return db.readers.QueryContext(ctx, queries[q], args...)
	}
	return db.prepared.query(ctx, db.readers, q, args)
}

// oftenOne is often for a query of one row, or none: sql.ErrNoRows.
func (db *DB) oftenOne(ctx context.Context, q query, args []any, dest ...any) (err error) {
	rows, err := db.often(ctx, q, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if !rows.Next() {
		return cmp.Or(rows.Err(), sql.ErrNoRows)
	}
	return rows.Scan(dest...)
}
