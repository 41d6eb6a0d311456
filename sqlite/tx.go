package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/holdfast-mq/holdfast"
)

// Tx is a transaction on the store's file. Do and handlers get one; In makes one from a transaction
// of the caller. It is not for concurrent use. It ends with the function to which it was passed, or
// with the caller's transaction.
//
// A statement undoes the whole transaction if its ctx ends while it writes, or if it meets a full
// disk; so does SQL that ends the transaction. From then on every call fails, and Do returns an
// error even if the function does not.
type Tx struct {
	db    *DB
	tx    *sql.Tx
	wtx   *writeTx
	over  atomic.Bool
	fault error // why the transaction cannot be committed

	// sure: the transaction was seen open, and only the store's own statements have run since.
	// never: the caller's rows may run a statement at any time.
	sure, never bool

	joined bool // the transaction is the caller's, who commits it: see attach_join.go
}

var _ holdfast.Enqueuer = (*Tx)(nil)

// ExecContext runs a statement in the transaction.
func (t *Tx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if err := t.ours(nil); err != nil {
		return nil, err
	}
	t.sure = false
	r, err := t.tx.ExecContext(ctx, query, args...)
	t.mayUndo(query)
	return r, t.seen(err)
}

// QueryContext runs a query in the transaction.
func (t *Tx) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := t.ours(nil); err != nil {
		return nil, err
	}
	t.sure, t.never = false, true
	rows, err := t.tx.QueryContext(ctx, query, args...)
	t.mayUndo(query)
	return rows, t.seen(err)
}

// QueryRowContext runs a query for at most one row in the transaction.
func (t *Tx) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if err := t.ours(nil); err != nil {
		// A Row cannot carry an error of this package; Do returns it.
		ended, cancel := context.WithCancel(ctx)
		cancel()
		ctx = ended
	}
	t.sure, t.never = false, true
	row := t.tx.QueryRowContext(ctx, query, args...)
	t.mayUndo(query)
	return row
}

// Enqueue writes messages in the transaction: they exist if it commits. After ErrInvalid and
// ErrConflict the transaction goes on without them. After any other error, a transaction of Do will
// not commit, and one of In goes on.
func (t *Tx) Enqueue(ctx context.Context, ms ...holdfast.Message) ([]holdfast.Receipt, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(ms) == 0 {
		return nil, nil
	}
	k, err := t.db.newEnqueue(ms)
	if err != nil {
		return nil, err
	}
	if t.joined {
		return t.enqueueJoined(k)
	}
	if err := t.ours(k.apply); err != nil {
		return nil, fmt.Errorf("enqueue: %w", err)
	}
	if k.conflict != nil {
		return nil, k.conflict
	}
	t.wtx.after = append(t.wtx.after, func() { k.tell(context.WithoutCancel(ctx), t.db.log) })
	return k.receipts, nil
}

// ours runs statements of the store in the transaction, if it is still open. After a fault here,
// half of the work may be done, so the transaction must not commit.
func (t *Tx) ours(statements func(tx *writeTx) error) error {
	if t.over.Load() {
		return sql.ErrTxDone
	}
	if t.fault != nil {
		return t.fault
	}
	err := t.wtx.conn.alone(func() error {
		if !t.sure && !t.wtx.conn.open() {
			return errUndone
		}
		if statements == nil {
			return nil
		}
		return statements(t.wtx)
	})
	t.sure = err == nil && !t.never
	t.fault = t.judge(err)
	return t.fault
}

// judge is writer.judge, but keeps a caller's transaction from touching the writer's state.
func (t *Tx) judge(err error) error {
	if !t.joined {
		return t.db.writer.judge(err)
	}
	err = translate(err)
	if errors.Is(err, errIO) {
		t.db.writer.doubted.Store(true)
	}
	return err
}

// seen translates an error for the caller's function, which may handle it in any way, and remembers
// what it says about the disk.
func (t *Tx) seen(err error) error {
	if err == nil {
		return nil
	}
	err = t.judge(err)
	if errors.Is(err, holdfast.ErrDiskFull) || errors.Is(err, errIO) {
		t.fault = err // SQLite has usually undone everything, but not always
	}
	return err
}

// insideKey marks a context that was passed to Do's function.
type insideKey struct{ db *DB }

func (db *DB) within(ctx context.Context) bool { return ctx.Value(insideKey{db}) != nil }

// Do runs fn in one transaction. What fn writes and enqueues commits together, durably, before Do
// returns. An error, a panic or a ctx that ends undoes everything. Do waits for its turn between
// group commits, and blocks the store's other writers while fn runs. Keep fn short, and do not wait
// for another machine in it.
func (db *DB) Do(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) error {
	return db.turn(ctx, false, fn)
}

// turn is Do. If ends is true, fn ends something: it may run on a full disk too, and then perhaps
// more than once.
func (db *DB) turn(ctx context.Context, ends bool, fn func(ctx context.Context, tx *Tx) error) error {
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
	if err := db.room.refusal(); err != nil && !ends {
		return fmt.Errorf("do: %w", err)
	}
	for tried := false; ; tried = true {
		err := db.transaction(ctx, fn)
		own, callers := errors.AsType[*callerError](err)
		if callers {
			err = own.err
		} else if err != nil {
			err = fmt.Errorf("do: %w", w.judge(err))
		}
		if !errors.Is(err, holdfast.ErrDiskFull) {
			return err
		}
		w.restartLog() // so that the next one has room, at least
		if !ends || tried && !w.useReserve() || w.trusted() != nil {
			return err
		}
	}
}

// callerError is an error of the caller's function, which is returned unchanged.
type callerError struct{ err error }

func (e *callerError) Error() string { return e.err.Error() }

func (db *DB) transaction(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) (err error) {
	// Without ctx: database/sql would roll back on its own goroutine, beside the statements that
	// run here.
	c := db.writer.conn
	sqlTx, err := c.lend()
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	wtx := &db.writer.tx
	wtx.begin(db.writer)
	tx := &Tx{db: db, tx: sqlTx, wtx: wtx}
	committed := false
	defer func() {
		tx.over.Store(true)
		if !committed { // also after a panic or runtime.Goexit
			_ = sqlTx.Rollback() // after a failed statement it may be gone already
			wtx.rollback()       // after a failed commit database/sql takes it for gone
		}
	}()
	if err := wtx.enter(); err != nil {
		return err
	}
	tx.sure = true
	if err := fn(context.WithValue(ctx, insideKey{db}, true), tx); err != nil {
		return &callerError{err}
	}
	if err := ctx.Err(); err != nil {
		return &callerError{err}
	}
	if err := tx.ours(db.writer.conclude); err != nil {
		return err
	}
	if db.writer.suspect { // fn saw the failure and did not return it
		return fmt.Errorf("commit: a statement before it failed: %w", errIO)
	}
	if err := sqlTx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	committed = true
	c.ended()
	wtx.publish()
	return db.present()
}
