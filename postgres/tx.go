package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ownTx is a short transaction of the store's own statements. It holds no
// lock while anybody else's code runs.
type ownTx struct {
	db    *DB
	conn  *pgxpool.Conn
	ctx   context.Context //nolint:containedctx // of this one transaction
	begun bool
	xid   string
	after []func() // run once it is committed
}

// own runs fn in a transaction, bounded by Options.Timeout. The server's own
// demand to do it again (deadlock, serialization) is obeyed: fn must start from
// nothing. When the answer to COMMIT is lost, what became of it is found out.
func (db *DB) own(ctx context.Context, fn func(tx *ownTx) error) error {
	ctx, cancel := context.WithTimeout(ctx, db.opts.Timeout)
	defer cancel()
	for try := 1; ; try++ {
		err := db.ownOnce(ctx, fn)
		if err == nil || try == 4 || !again(err) || ctx.Err() != nil {
			return explain(err)
		}
	}
}

func (db *DB) ownOnce(ctx context.Context, fn func(tx *ownTx) error) error {
	conn, err := db.pools.own.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	tx := &ownTx{db: db, conn: conn, ctx: ctx}
	err = fn(tx)
	if err == nil && tx.begun {
		err = tx.commit()
	} else if err != nil {
		tx.rollback()
	}
	conn.Release()
	if err != nil {
		return err
	}
	for _, f := range tx.after {
		f()
	}
	return nil
}

// query runs one statement and calls row for each of its rows. The first
// statement of a transaction begins it, in the same round trip.
func (tx *ownTx) query(sql string, args []any, row func(rows pgx.Rows) error) error {
	b := &pgx.Batch{}
	if !tx.begun {
		b.Queue("BEGIN")
		b.Queue("SELECT pg_current_xact_id()::text").QueryRow(func(r pgx.Row) error { return r.Scan(&tx.xid) })
		tx.begun = true
	}
	b.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			if row == nil {
				continue
			}
			if err := row(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	})
	return tx.conn.SendBatch(tx.ctx, b).Close()
}

// exec runs one statement whose rows nobody needs.
func (tx *ownTx) exec(sql string, args ...any) error { return tx.query(sql, args, nil) }

func (tx *ownTx) commit() error {
	tag, err := tx.conn.Exec(tx.ctx, "COMMIT", pgx.QueryExecModeSimpleProtocol)
	switch {
	case err == nil && tag.String() == "COMMIT":
		return nil
	case err == nil:
		return errRolledBack
	}
	if _, said := errors.AsType[*pgconn.PgError](err); said && !tx.conn.Conn().IsClosed() {
		return err // the server refused
	}
	return tx.db.resolve(context.WithoutCancel(tx.ctx), tx.xid, err)
}

var errRolledBack = errors.New("the server rolled the transaction back")

// rollback needs no ctx that still lives: what was begun has to end.
func (tx *ownTx) rollback() {
	if !tx.begun || tx.conn.Conn().IsClosed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tx.ctx), time.Second)
	defer cancel()
	if _, err := tx.conn.Exec(ctx, "ROLLBACK", pgx.QueryExecModeSimpleProtocol); err != nil {
		_ = tx.conn.Conn().Close(ctx) // the server rolls back what has lost its connection
	}
}

// querier is what a statement outside of a transaction needs.
func (db *DB) read(ctx context.Context, sql string, args []any, row func(rows pgx.Rows) error) error {
	ctx, cancel := context.WithTimeout(ctx, db.opts.Timeout)
	defer cancel()
	rows, err := db.pools.own.Query(ctx, sql, args...)
	if err != nil {
		return explain(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return explain(rows.Err())
}
