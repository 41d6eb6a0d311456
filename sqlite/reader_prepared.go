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
	ready map[string]ready // by text
}

// ready is a query that is closed with the readers' connections.
type ready struct{ *sql.Stmt }

// known returns a query that is prepared. It may be called by who has a connection: it waits for none.
func (p *prepared) known(text string) (q ready, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q, ok = p.ready[text]
	return q, ok
}

// of returns a query, and prepares it first if nobody has.
func (p *prepared) of(ctx context.Context, readers *sql.DB, text string) (q ready, err error) {
	q, ok := p.known(text)
	if ok {
		return q, nil
	}
	if q.Stmt, err = readers.PrepareContext(ctx, text); err != nil {
		return q, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if other, ok := p.ready[text]; ok {
		return other, q.Close() // somebody was faster
	}
	if p.ready == nil {
		p.ready = map[string]ready{}
	}
	p.ready[text] = q
	return q, nil
}

func (p *prepared) query(ctx context.Context, readers *sql.DB, text string, args []any) (*sql.Rows, error) {
	q, err := p.of(ctx, readers, text)
	if err != nil {
		return nil, err
	}
	return q.QueryContext(ctx, args...)
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
