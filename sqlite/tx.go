package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/holdfast-mq/holdfast"
)

// Tx is a transaction on the store's file, passed to Do and to handlers, or
// made of the caller's own by In. It is not for concurrent use, and ends with
// the function it was passed to, or with the caller's transaction.
//
// A statement whose ctx ends while it writes, or that meets a full disk, undoes
// the whole transaction; so does SQL that ends it. From then on every call
// fails, and Do reports it even if the function does not.
type Tx struct {
	db    *DB
	tx    *sql.Tx
	wtx   *writeTx
	over  atomic.Bool
	fault error // why it cannot be committed

	// sure: it was seen open, and nothing but the store's own has run since.
	// never: the caller's rows may run a statement at any time.
	sure, never bool

	joined bool // it is the caller's, who commits it: attach_join.go
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
		// A Row cannot be made with an error of ours; Do will tell.
		ended, cancel := context.WithCancel(ctx)
		cancel()
		ctx = ended
	}
	t.sure, t.never = false, true
	row := t.tx.QueryRowContext(ctx, query, args...)
	t.mayUndo(query)
	return row
}

// Enqueue writes messages in the transaction: they exist if it commits. After
// ErrInvalid and ErrConflict the transaction goes on without them; after any
// other error that of Do will not commit, and that of In goes on.
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

// ours runs statements of the store in the transaction, if it is still open.
// A fault here may have left half of something behind, so that the transaction
// must not commit.
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

// judge is the writer's, whose own a transaction of the caller's must not touch.
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

// seen translates an error for the caller's function, which may do with it
// what it likes, and remembers what it says about the disk.
func (t *Tx) seen(err error) error {
	if err == nil {
		return nil
	}
	err = t.judge(err)
	if errors.Is(err, holdfast.ErrDiskFull) || errors.Is(err, errIO) {
		t.fault = err // mostly SQLite has undone everything, but not always
	}
	return err
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
	return db.turn(ctx, false, fn)
}

// turn is Do. What ends something may be done on a full disk, too, and is then
// perhaps run more than once.
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
		w.restartLog() // for the next one, at least
		if !ends || tried && !w.useReserve() || w.trusted() != nil {
			return err
		}
	}
}

// callerError is an error of the caller's function, passed on as it is.
type callerError struct{ err error }

func (e *callerError) Error() string { return e.err.Error() }

func (db *DB) transaction(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) (err error) {
	// Without ctx: database/sql would roll back on its own goroutine, beside
	// the statements that run here.
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
		if !committed { // also after a panic, or runtime.Goexit
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
	if db.writer.suspect { // fn saw it, and does not say
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
