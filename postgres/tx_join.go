package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
)

// In is the outbox and the inbox inside a transaction of the caller's own, of
// any pgx connection or pool that leads to the store's database: what it
// enqueues and processes exists if the caller commits. The dispatchers learn of
// the commit by their poll, within a second; that of Do is known at once.
//
// A call takes effect as a whole or not at all. After ErrInvalid and
// ErrConflict, and after an error of a handler, the transaction goes on; an
// error of the database aborts it, as always in PostgreSQL. A synchronous_commit
// of off is turned on for this transaction, because what is accepted must be
// durable. In holds nothing: it needs no end, and may be called again for the
// same transaction.
func (db *DB) In(tx pgx.Tx) *Tx {
	return &Tx{base: tx, part: part{session: pgxSession{tx}, db: db, joined: true}}
}

// InSQL is In for a *sql.Tx of pgx's driver (github.com/jackc/pgx/v5/stdlib).
func (db *DB) InSQL(tx *sql.Tx) *SQLTx {
	return &SQLTx{tx: tx, part: part{session: sqlSession{tx}, db: db, joined: true}}
}

// SQLTx is a caller's transaction of database/sql: an outbox and an inbox,
// with the statements of the *sql.Tx. It ends with that.
type SQLTx struct {
	tx *sql.Tx
	part
}

var _ holdfast.Enqueuer = (*SQLTx)(nil)

// ExecContext runs a statement in the transaction.
func (t *SQLTx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return t.tx.ExecContext(ctx, query, args...)
}

// QueryContext runs a query in the transaction.
func (t *SQLTx) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return t.tx.QueryContext(ctx, query, args...)
}

// QueryRowContext runs a query for at most one row in the transaction.
func (t *SQLTx) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return t.tx.QueryRowContext(ctx, query, args...)
}

// Enqueue writes messages in the transaction: they exist if it commits. After
// ErrInvalid and ErrConflict the transaction goes on.
func (t *SQLTx) Enqueue(ctx context.Context, ms ...holdfast.Message) ([]holdfast.Receipt, error) {
	return t.enqueue(ctx, ms)
}

// Process is Tx.Process.
func (t *SQLTx) Process(ctx context.Context, m holdfast.Message, retention time.Duration, h holdfast.Handler[*SQLTx]) (holdfast.Receipt, error) {
	return t.process(ctx, m, retention, func(ctx context.Context, m holdfast.Message) ([]byte, error) { return h(ctx, t, m) })
}

// enter looks at a caller's transaction before the store writes in it. It does
// so at each call: the caller may have gone back to a savepoint of before.
func (p *part) enter(ctx context.Context) error {
	if !p.joined {
		return nil
	}
	want, err := p.db.identity(ctx)
	if err == nil {
		err = p.stands(ctx)
	}
	if err != nil {
		return err
	}
	var got, timeline string
	var readOnly bool
	err = p.do(ctx, statement{enterJoined, nil, func(rows pgx.Rows) error {
		var durable bool
		return rows.Scan(&got, &readOnly, &timeline, &durable)
	}})
	switch {
	case isCode(err, "42P01"):
		return fmt.Errorf("the transaction is of a database, or has a search_path, without the tables of this store: %w", err)
	case err != nil:
		return err
	case got != want:
		return errors.New("the transaction is of another database, or another schema, than this store, with tables of its own")
	case readOnly:
		return errors.New("the transaction is read-only: begin one that may write")
	}
	return p.db.past.goesOn(timeline)
}

// goesOn refuses a transaction on a server of another timeline: an old primary has
// the same tables, and what is kept there is lost. Of a later one the store has yet
// to hear: it looks for it now, because its own connections may stay at an old
// primary that answers.
func (p *past) goesOn(timeline string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.line.timeline == "" || timeline == p.line.timeline:
		return nil
	case timeline < p.line.timeline:
		return fmt.Errorf("%w: the transaction is on an old primary, at timeline %s, and the store on a server at timeline %s", holdfast.ErrUnavailable, number(timeline), number(p.line.timeline))
	}
	ring(p.behind)
	return fmt.Errorf("%w: the transaction is on a server at timeline %s, and the store still on one at timeline %s; it looks at its address now: run the transaction again", holdfast.ErrUnavailable, number(timeline), number(p.line.timeline))
}

// identity tells the tables of this store from all others.
func (db *DB) identity(ctx context.Context) (string, error) {
	if known := db.inbound.identity.Load(); known != nil {
		return *known, nil
	}
	var text string
	if err := db.read(ctx, identity, nil, func(r pgx.Rows) error { return r.Scan(&text) }); err != nil {
		return "", err
	}
	if text == "" {
		return "", errors.New("the row incarnation of table hf_meta is gone, so that nothing tells this store from another")
	}
	db.inbound.identity.Store(&text)
	return text, nil
}
