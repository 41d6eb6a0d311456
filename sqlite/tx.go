package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/holdfast-mq/holdfast"
)

// Tx is a transaction on the store's file, passed to Do and to handlers. It
// is not for concurrent use, and ends with the function it was passed to.
type Tx struct {
	db  *DB
	tx  *sql.Tx
	wtx *writeTx
}

var _ holdfast.Enqueuer = (*Tx)(nil)

// ExecContext runs a statement in the transaction.
func (t *Tx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return t.tx.ExecContext(ctx, query, args...)
}

// QueryContext runs a query in the transaction.
func (t *Tx) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return t.tx.QueryContext(ctx, query, args...)
}

// QueryRowContext runs a query for at most one row in the transaction.
func (t *Tx) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return t.tx.QueryRowContext(ctx, query, args...)
}

// Enqueue writes messages in the transaction: they exist if it commits. After
// an error other than ErrInvalid and ErrConflict, return it: the transaction
// is not worth committing.
func (t *Tx) Enqueue(ctx context.Context, ms ...holdfast.Message) ([]holdfast.Receipt, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	k, err := t.db.newEnqueue(ms)
	if err != nil {
		return nil, err
	}
	if err := k.apply(t.wtx); err != nil {
		return nil, fmt.Errorf("enqueue: %w", translate(err))
	}
	if k.conflict != nil {
		return nil, k.conflict
	}
	return k.receipts, nil
}

// insideKey marks a context that was passed to Do's function.
type insideKey struct{ db *DB }

func (db *DB) within(ctx context.Context) bool { return ctx.Value(insideKey{db}) != nil }

// Do runs fn in one transaction: what it writes and what it enqueues commit
// together, durably, before Do returns. An error, a panic or a ctx that ends
// undoes everything. Do waits its turn between group commits and holds up
// the store's other writers while fn runs: keep it short, and call nothing in
// it that waits for another machine.
func (db *DB) Do(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) error {
	if db.within(ctx) {
		return fmt.Errorf("do: %w", holdfast.ErrNested)
	}
	w := db.writer
	j := w.jobs.Get().(*job)
	t := &turn{back: make(chan struct{})}
	j.turn = t
	if err := w.await(ctx, j); err != nil {
		return fmt.Errorf("do: %w", err)
	}
	defer close(t.back)
	if err := w.trusted(); err != nil {
		return fmt.Errorf("do: %w", err)
	}
	err := db.transaction(ctx, fn)
	if err != nil {
		if own, ok := errors.AsType[*callerError](err); ok {
			return own.err
		}
		return fmt.Errorf("do: %w", w.judge(err))
	}
	return nil
}

// callerError is an error of the caller's function, passed on as it is.
type callerError struct{ err error }

func (e *callerError) Error() string { return e.err.Error() }

func (db *DB) transaction(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) (err error) {
	// Without ctx: database/sql would roll back on its own goroutine, beside
	// the statements that run here.
	sqlTx, err := db.lent.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	wtx := &db.writer.tx
	wtx.begin(db.writer)
	committed := false
	defer func() {
		if !committed {
			_ = sqlTx.Rollback() // after a failed statement it may be gone already
			wtx.forget()
		}
	}()
	if err := db.checkEpoch(db.writer.conn); err != nil {
		return err
	}
	if err := fn(context.WithValue(ctx, insideKey{db}, true), &Tx{db: db, tx: sqlTx, wtx: wtx}); err != nil {
		return &callerError{err}
	}
	if err := ctx.Err(); err != nil {
		return &callerError{err}
	}
	if err := sqlTx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	committed = true
	wtx.publish()
	return nil
}
