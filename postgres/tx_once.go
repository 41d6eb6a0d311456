package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// once is a transaction of one statement, which takes one round trip. It is for work that needs no
// second statement before the commit. If the answer is lost, the number of the transaction is
// unknown. Then the store waits for the end of the server's process, and the rows of the proof tell
// whether the transaction was committed.
type once struct {
	sql   string
	args  []any
	row   func(rows pgx.Rows) error
	proof proof
}

// atOnce runs the statement that prepare makes for a history. It repeats both in the cases in which
// own would.
func (db *DB) atOnce(caller context.Context, turn uint64, prepare func(tx *ownTx) once) error {
	ctx, cancel := context.WithTimeout(caller, db.opts.Timeout)
	defer cancel()
	ctx, release := db.past.within(ctx)
	defer release()
	for try := 1; ; try++ {
		tx := &ownTx{db: db, ctx: ctx, owner: db.self.owner()}
		err := tx.once(turn, prepare(tx))
		if err == nil {
			db.outage.over()
			tx.publish()
			return nil
		}
		if !db.outage.again(ctx, try, err) {
			return db.noteRoom(explainTo(caller, db.past.since(turn, err, errStale)))
		}
	}
}

func (tx *ownTx) once(turn uint64, o once) error {
	conn, err := tx.db.connect(tx.ctx, tx.db.pools.own)
	if err != nil {
		return err
	}
	if err := tx.still(turn); err != nil {
		conn.Release()
		return err
	}
	c := conn.Conn()
	err = each(tx.ctx, c, o.sql, o.args, o.row)
	done := err == nil
	if done {
		err = tx.db.onStandbys(tx.ctx, c)
	}
	broken := c.IsClosed()
	conn.Release() // before another connection is needed: there may be only one
	switch {
	case errors.Is(err, errElsewhere):
		return tx.db.prove(tx.ctx, turn, &o.proof, err)
	case err == nil || done || !broken || pgconn.SafeToRetry(err):
		return err // done, or refused, or never sent
	}
	unknown := fmt.Errorf("%w: the connection was lost: %s", ErrUnknown, err.Error()) // the meaning of err would mislead here as well
	if err := tx.db.awaitEnd(tx.ctx, serverOf(c)); err != nil {
		return fmt.Errorf("%w; not determined: %s", unknown, err.Error()) // another meaning of err would mislead
	}
	return tx.db.prove(tx.ctx, turn, &o.proof, unknown)
}

func each(ctx context.Context, c *pgx.Conn, sql string, args []any, row func(rows pgx.Rows) error) error {
	rows, err := c.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// awaitEnd returns when the server's process of a lost connection has ended, and with it its
// transaction. It takes at most twice the rest of Options.Timeout, so that a caller who has waited
// that long for a stalling server need not wait as long again.
func (db *DB) awaitEnd(ctx context.Context, was server) error {
	bound := db.opts.Timeout / 4
	if end, ok := ctx.Deadline(); ok {
		bound = max(bound, 2*time.Until(end))
	}
	ctx, cancel := db.past.search(ctx, bound)
	defer cancel()
	began := time.Now()
	for try := 0; ; try++ {
		alive := false
		err := db.apart(ctx, func(ctx context.Context, conn *pgx.Conn) error {
			switch now := serverOf(conn).line(); {
			case was.system == "" || was.system != now.system:
				return errElsewhere // it has other processes
			case !was.line().leadsTo(now) || was.timeline != now.timeline:
				return nil // what the old server still does does not belong to this history, in which the proof is looked for
			}
			return each(ctx, conn, isAlive, []any{int32(was.pid), time.Since(began) > time.Second}, func(rows pgx.Rows) error {
				alive = true
				return rows.Scan(nil)
			})
		})
		if err == nil && !alive {
			return nil
		}
		if errors.Is(err, errElsewhere) {
			return err
		}
		if backOff(ctx, try) != nil {
			return errors.Join(err, ctx.Err())
		}
	}
}
