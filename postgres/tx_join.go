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

// In returns the outbox and the inbox inside a transaction of the caller, of any pgx connection or
// pool that leads to the store's database. What it enqueues and processes exists if the caller
// commits. The dispatchers learn of that commit by their poll, within a second, whereas a commit of
// Do wakes them at once.
//
// A call takes effect as a whole or not at all. After ErrInvalid and ErrConflict, and after an
// error of a handler, the transaction continues. An error of the database aborts it, as always in
// PostgreSQL. If synchronous_commit is off, In turns it on for this transaction, because an
// accepted message must be durable. In holds no resources: its result needs no Close, and In may be
// called again for the same transaction.
func (db *DB) In(tx pgx.Tx) *Tx {
	return &Tx{base: tx, part: part{session: pgxSession{tx}, db: db, joined: true}}
}

// InSQL is In for a *sql.Tx of pgx's driver (github.com/jackc/pgx/v5/stdlib).
func (db *DB) InSQL(tx *sql.Tx) *SQLTx {
	return &SQLTx{tx: tx, part: part{session: sqlSession{tx}, db: db, joined: true}}
}

// SQLTx is a caller's transaction of database/sql: an outbox and an inbox, with the statements of
// the *sql.Tx. It is valid as long as the *sql.Tx.
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

// Enqueue writes messages in the transaction: they exist if it commits. After ErrInvalid and
// ErrConflict the transaction continues.
func (t *SQLTx) Enqueue(ctx context.Context, ms ...holdfast.Message) ([]holdfast.Receipt, error) {
	return t.enqueue(ctx, ms)
}

// Process is Tx.Process.
func (t *SQLTx) Process(ctx context.Context, m holdfast.Message, retention time.Duration, h holdfast.Handler[*SQLTx]) (holdfast.Receipt, error) {
	return t.process(ctx, m, retention, func(ctx context.Context, m holdfast.Message) ([]byte, error) { return h(ctx, t, m) })
}

// enter checks a caller's transaction before the store writes in it. It does so at each call, since
// the caller may have rolled back to an earlier savepoint.
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
	var got, timeline, branch string
	var readOnly bool
	err = p.do(ctx, statement{enterJoined, nil, func(rows pgx.Rows) error {
		var durable bool
		return rows.Scan(&got, &readOnly, &timeline, &durable, &branch)
	}})
	switch {
	case isCode(err, "42P01"):
		return fmt.Errorf("the transaction is in a database, or has a search_path, without the tables of this store: %w", err)
	case err != nil:
		return err
	case got != want:
		return errors.New("the transaction is in another database, or another schema, than this store")
	case readOnly:
		return errors.New("the transaction is read-only: begin one that can write")
	}
	return p.db.past.goesOn(timeline, branch)
}

// identity returns what distinguishes the tables of this store from all others.
func (db *DB) identity(ctx context.Context) (string, error) {
	if known := db.inbound.identity.Load(); known != nil {
		return *known, nil
	}
	var text string
	if err := db.read(ctx, identity, nil, func(r pgx.Rows) error { return r.Scan(&text) }); err != nil {
		return "", err
	}
	if text == "" {
		return "", errors.New("the row incarnation of table hf_meta is gone, so that this store cannot be distinguished from another")
	}
	db.inbound.identity.Store(&text)
	return text, nil
}
