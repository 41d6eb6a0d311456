package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"sync"
)

// prepared holds the readers' queries that run for each request, for each attempt or every few
// seconds: preparing one takes longer than running it.
type prepared struct {
	mu    sync.Mutex
	stmts map[string]*sql.Stmt // by text; closed with the readers' connections
}

func (p *prepared) query(ctx context.Context, readers *sql.DB, text string, args []any) (*sql.Rows, error) {
	p.mu.Lock()
	s := p.stmts[text]
	if s == nil {
		var err error
		if s, err = readers.PrepareContext(ctx, text); err != nil {
			p.mu.Unlock()
			return nil, err
		}
		if p.stmts == nil {
			p.stmts = map[string]*sql.Stmt{}
		}
		p.stmts[text] = s
	}
	p.mu.Unlock()
	return s.QueryContext(ctx, args...)
}

// often is query for frequent queries.
func (db *DB) often(ctx context.Context, q query, args ...any) (*sql.Rows, error) {
	return db.kept(ctx, queries[q], args...)
}

// kept runs a query that stays prepared, except on the caller's handle, whose statements belong to
// the caller.
func (db *DB) kept(ctx context.Context, text string, args ...any) (rows *sql.Rows, err error) {
	if err := db.readable(ctx); err != nil {
		return nil, err
	}
	if db.attached != nil {
		rows, err = db.readers.QueryContext(ctx, text, args...)
	} else {
		rows, err = db.prepared.query(ctx, db.readers, text, args)
	}
	return rows, db.noted(err)
}

// oftenOne is often for a query of at most one row. Without a row it returns sql.ErrNoRows.
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
