package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-mq/holdfast"
)

// base is the part of a Tx that passes calls through: Exec, Query, QueryRow, SendBatch, CopyFrom
// and the rest of a pgx.Tx.
type base = pgx.Tx

// Tx is a transaction on the store's database. Do and handlers get one, and In makes one from the
// caller's own transaction. It is an outbox, and a pgx.Tx that cannot be ended: whoever began it
// ends it. It is not safe for concurrent use, and is valid until the function that got it returns.
//
// A failed statement aborts the transaction, as always in PostgreSQL. Do then returns an error even
// if the function does not. Begin makes a savepoint, within which a statement may fail.
type Tx struct {
	base
	part
}

var (
	_ holdfast.Enqueuer = (*Tx)(nil)
	_ pgx.Tx            = (*Tx)(nil)
)

// errEnding is the error of Commit and Rollback.
var errEnding = errors.New("the transaction ends with the function that it was passed to: return nil to commit, an error to roll back")

// Commit always fails. To commit, return nil from the function.
func (t *Tx) Commit(context.Context) error { return fmt.Errorf("commit: %w", errEnding) }

// Rollback always fails, and from then on the transaction cannot commit. To roll back, return an
// error from the function.
func (t *Tx) Rollback(context.Context) error {
	t.doomed = fmt.Errorf("roll back: %w", errEnding)
	return t.doomed
}

// Enqueue writes messages in the transaction: they exist if it commits. A call takes effect as a
// whole or not at all. After ErrInvalid and ErrConflict the transaction continues; after an error
// of the database it is aborted.
func (t *Tx) Enqueue(ctx context.Context, ms ...holdfast.Message) ([]holdfast.Receipt, error) {
	return t.enqueue(ctx, ms)
}

// errEnded means that a COMMIT or ROLLBACK was among the statements.
var errEnded = errors.New("the transaction was ended by a statement in it, and what it did before may be committed or not")

// Do runs fn in one transaction. What fn writes and enqueues commits together, durably, before Do
// returns, and wakes the dispatchers at once. An error, a panic or a ctx that ends undoes
// everything. Do returns an error of fn unchanged, and repeats nothing. Concurrent calls are
// limited by the number of connections (Options.Connections). fn may take long: only transactions
// that need the rows, ids and names that it has locked wait for it.
func (db *DB) Do(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) error {
	if err := db.usable(ctx); err != nil {
		return fmt.Errorf("do: %w", err)
	}
	err := db.transact(ctx, nil, fn)
	if own, ok := errors.AsType[*callerError](err); ok {
		return db.noteRoom(own.err)
	}
	if err != nil {
		return fmt.Errorf("do: %w", db.noteRoom(explainTo(ctx, err)))
	}
	return nil
}

// callerError is an error of the caller's function, which is returned unchanged.
type callerError struct{ err error }

func (e *callerError) Error() string { return e.err.Error() }
func (e *callerError) Unwrap() error { return e.err }

// transact runs first and then fn, in one transaction on a separate connection.
func (db *DB) transact(ctx context.Context, first func() []statement, fn func(ctx context.Context, tx *Tx) error) error {
	conn, tx, err := db.begin(ctx, first)
	if err != nil {
		return err
	}
	committed := false
	defer func() {
		tx.over.Store(true)
		if !committed { // also after a panic, or runtime.Goexit
			undo(ctx, conn, tx.base)
		}
		conn.Release()
	}()
	if err := fn(context.WithValue(ctx, insideKey{db}, true), tx); err != nil {
		return &callerError{err}
	}
	if err := ctx.Err(); err != nil {
		return &callerError{err}
	}
	if err := tx.commit(ctx, conn); err != nil {
		return err
	}
	committed = true
	tx.publish()
	return nil
}

// begin takes a connection and begins a transaction, in one round trip with its first statements,
// within Options.Timeout. It waits through a short absence of the server, since nothing has
// happened yet.
func (db *DB) begin(ctx context.Context, first func() []statement) (*pgxpool.Conn, *Tx, error) {
	bounded, cancel := context.WithTimeout(ctx, db.opts.Timeout)
	defer cancel()
	for try := 1; ; try++ {
		conn, tx, err := db.beginOnce(bounded, first)
		if !db.outage.again(bounded, try, err) {
			if err != nil {
				err = explainTo(ctx, fmt.Errorf("begin: %w", err))
			}
			return conn, tx, err
		}
	}
}

func (db *DB) beginOnce(ctx context.Context, first func() []statement) (*pgxpool.Conn, *Tx, error) {
	turn, known := db.past.now()
	conn, err := db.connect(ctx, db.pools.lent)
	if err != nil {
		return nil, nil, err
	}
	b := &pgx.Batch{}
	b.BeginTx(pgx.TxOptions{})
	tx := &Tx{part: part{db: db, turn: turn, table: known}}
	var table int64
	b.Queue(currentXID).QueryRow(func(r pgx.Row) error { return r.Scan(&tx.xid, &table) })
	if first != nil {
		queue(b, first()) // built again for each try: the results of a failed try are of no use
	}
	sent := conn.SendBatch(ctx, b)
	err = sent.Close()
	tx.base = sent.Tx()
	tx.session = pgxSession{tx.base}
	if err == nil {
		err = db.sees(table, known)
	}
	if err != nil {
		undo(ctx, conn, tx.base)
		conn.Release()
		return nil, nil, err
	}
	return conn, tx, nil
}

// undo works even if ctx has ended: the connection must come back clean.
func undo(ctx context.Context, conn *pgxpool.Conn, tx pgx.Tx) {
	if conn.Conn().IsClosed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := tx.Rollback(ctx); err != nil && conn.Conn().PgConn().TxStatus() != 'I' {
		_ = conn.Conn().Close(ctx) // the server rolls back when the connection is gone
	}
}

// commit commits, and finds out the outcome if the answer is lost. The caller's ctx does not
// interrupt it, since then nobody could tell the outcome.
func (t *Tx) commit(ctx context.Context, conn *pgxpool.Conn) error {
	switch status := conn.Conn().PgConn().TxStatus(); {
	case t.doomed != nil:
		return t.doomed
	case status == 'I':
		return errEnded
	case status == 'E':
		return fmt.Errorf("a statement in it failed: %w", errRolledBack)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.db.opts.Timeout)
	defer cancel()
	ctx, release := t.db.past.within(ctx)
	defer release()
	if err := t.conclude(ctx); err != nil {
		return t.db.past.since(t.turn, err, errStale)
	}
	err := t.base.Commit(ctx)
	switch {
	case err == nil:
		return t.prove(ctx, t.db.onStandbys(ctx, conn.Conn()))
	case errors.Is(err, pgx.ErrTxCommitRollback):
		return fmt.Errorf("a statement in it failed: %w", errRolledBack)
	}
	if _, said := errors.AsType[*pgconn.PgError](err); said && !conn.Conn().IsClosed() {
		return fmt.Errorf("commit: %w", err) // the server refused
	}
	return t.prove(ctx, t.db.resolve(ctx, conn.Conn(), t.xid, fmt.Errorf("commit: %w", err)))
}

// prove looks for the rows of the transaction if its outcome is unknown.
func (t *Tx) prove(ctx context.Context, err error) error {
	if p := t.proof(); errors.Is(err, ErrUnknown) && !errors.Is(err, errOpen) && p.rows != nil {
		err = t.db.prove(ctx, t.turn, &p, err)
	}
	return err
}
