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

// ownTx is a short transaction of the store's own statements. It holds no lock while code of others
// runs.
type ownTx struct {
	db    *DB
	conn  *pgxpool.Conn
	ctx   context.Context //nolint:containedctx // of this transaction
	begun bool
	// impatient transactions do not wait for rows that others have locked: the calls that share a
	// transaction must not wait for a lock that only one of them needs.
	impatient bool
	xid       string
	turn      uint64      // the history that it belongs to
	table     int64       // the table that names belong to in that history
	owner     int64       // this node's owner number at the start
	after     []func()    // called after the commit
	last      []statement // sent together with COMMIT
	proof     proof

	counts map[int32]holdfast.LaneCounts
	inbox  int64
	kept   int64
	woken  map[int32]struct{}
}

// own runs fn in a transaction, bounded by Options.Timeout. It repeats the transaction when the
// server asks for it (deadlock, serialization), and on a new connection when the old one is lost:
// fn must start from scratch each time. If the answer to COMMIT is lost, own finds out the outcome.
// It fails in another history than the one in which it began: fn may use numbers from
// before, which that history has given to something else.
func (db *DB) own(caller context.Context, fn func(tx *ownTx) error) error {
	ctx, cancel := context.WithTimeout(caller, db.opts.Timeout)
	defer cancel()
	turn, _ := db.past.is()
	ctx, release := db.past.within(ctx)
	defer release()
	for try := 1; ; try++ {
		err := db.ownOnce(ctx, turn, fn)
		if !db.outage.again(ctx, try, err) {
			return db.noteRoom(explainTo(caller, db.past.since(turn, err, errStale)))
		}
	}
}

// unbound is own for a function that uses no numbers from before, and may therefore run in another
// history as well.
func (db *DB) unbound(ctx context.Context, fn func(tx *ownTx) error) error {
	return anew(func() error { return db.own(ctx, fn) })
}

func (db *DB) ownOnce(ctx context.Context, turn uint64, fn func(tx *ownTx) error) error {
	conn, err := db.connect(ctx, db.pools.own)
	if err != nil {
		return err
	}
	defer conn.Release() // also after a panic: the pool closes a connection with an open transaction
	tx := &ownTx{db: db, conn: conn, ctx: ctx, owner: db.self.owner()}
	if tx.turn, tx.table = db.past.now(); tx.turn != turn {
		return errStale
	}
	err = fn(tx)
	if err == nil && tx.begun {
		err = tx.commit()
	} else if err != nil {
		tx.rollback()
	}
	conn.Release() // the proof needs another connection
	if errors.Is(err, ErrUnknown) && !errors.Is(err, errOpen) && tx.proof.rows != nil {
		err = db.prove(ctx, turn, &tx.proof, err)
	}
	if err != nil {
		return err
	}
	tx.publish()
	return nil
}

// proof shows that a transaction is committed when the server's history does not show it: rows that
// exist only if it is committed, or only if it is not.
type proof struct {
	rows   *proofRows
	unless bool   // the rows exist if it is not committed
	then   func() // called when it is committed; may be nil
}

type proofRows struct {
	sql  string
	args []any
}

// prove looks for the proof. The transaction did all or nothing, so one row is enough. In another
// history, the absence of rows proves nothing, since that history may never have had them.
func (db *DB) prove(ctx context.Context, turn uint64, p *proof, unknown error) error {
	ctx, cancel := db.past.search(ctx, db.opts.Timeout)
	defer cancel()
	_, table := db.past.now()
	for try := 0; ; try++ {
		err := db.apart(ctx, func(ctx context.Context, conn *pgx.Conn) error { return p.look(ctx, conn, table) })
		if now, _ := db.past.is(); p.unless && now != turn || errors.Is(err, errRemade) {
			return unknown
		}
		switch {
		case err == nil:
			if p.then != nil {
				p.then()
			}
			return nil
		case errors.Is(err, errUndone):
			return err
		case backOff(ctx, try) != nil:
			return fmt.Errorf("%w; not determined: %s", unknown, err.Error()) // another meaning of err would mislead
		}
	}
}

// look asks one server for both: whether the rows are there, and whether its synchronous standbys
// have them.
func (p *proof) look(ctx context.Context, conn *pgx.Conn, table int64) error {
	if err := p.sameTables(ctx, conn, table); err != nil {
		return err
	}
	found := false
	if err := each(ctx, conn, p.rows.sql, p.rows.args, func(pgx.Rows) error {
		found = true
		return nil
	}); err != nil {
		return err
	}
	if found == p.unless {
		return errUndone
	}
	return awaitStandbys(ctx, conn)
}

// errRemade: the tables are not those of the transaction.
var errRemade = errors.New("the tables were made anew")

// sameTables checks the tables if absent rows are the proof: the tables of a restored dump may
// never have had them.
func (p *proof) sameTables(ctx context.Context, conn *pgx.Conn, table int64) error {
	if !p.unless || table == 0 {
		return nil
	}
	var now int64
	if err := conn.QueryRow(ctx, "SELECT "+readTable).Scan(&now); err != nil {
		return err
	}
	if now != table {
		return errRemade
	}
	return nil
}

// query runs one statement and calls row for each of its rows. The first statement of a transaction
// begins it in the same round trip.
func (tx *ownTx) query(sql string, args []any, row func(rows pgx.Rows) error) error {
	b := &pgx.Batch{}
	first := !tx.begun
	var table int64
	if first {
		b.Queue("BEGIN")
		if tx.impatient {
			b.Queue(notPatient)
		}
		b.Queue(currentXID).QueryRow(func(r pgx.Row) error { return r.Scan(&tx.xid, &table) })
		tx.begun = true
	}
	b.Queue(sql, args...).Query(eachRow(row))
	err := tx.conn.SendBatch(tx.ctx, b).Close()
	if err == nil && first && tx.table != 0 { // otherwise the node has not read the table yet, and is entering
		err = tx.db.sees(table, tx.table)
	}
	return err
}

// eachRow calls row, unless it is nil, for each row of a statement.
func eachRow(row func(rows pgx.Rows) error) func(rows pgx.Rows) error {
	return func(rows pgx.Rows) error {
		for rows.Next() {
			if row == nil {
				continue
			}
			if err := row(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	}
}

// exec runs one statement and drops its rows.
func (tx *ownTx) exec(sql string, args ...any) error { return tx.query(sql, args, nil) }

// commit ends the transaction, and writes the changes of the counters in the same round trip.
func (tx *ownTx) commit() error {
	b := &pgx.Batch{}
	for _, s := range tx.last {
		b.Queue(s.sql, s.args...).Query(eachRow(s.row))
	}
	tx.queueTally(b)
	done := ""
	b.Queue("COMMIT").Exec(func(tag pgconn.CommandTag) error {
		done = tag.String()
		return nil
	})
	err := tx.conn.SendBatch(tx.ctx, b).Close()
	switch {
	case err == nil && done == "COMMIT":
		return tx.db.onStandbys(tx.ctx, tx.conn.Conn())
	case err == nil:
		return errRolledBack
	}
	if _, said := errors.AsType[*pgconn.PgError](err); said && !tx.conn.Conn().IsClosed() {
		tx.rollback()
		return err // the server refused
	}
	return tx.db.resolve(tx.ctx, tx.conn.Conn(), tx.xid, err)
}

// publish tells memory and other nodes what is now committed.
func (tx *ownTx) publish() {
	for _, f := range tx.after {
		f()
	}
	tx.db.meet(tx.ctx, tx.counts)
	tx.db.tally.add(tx)
	if len(tx.woken) > 0 {
		tx.db.wake(tx.woken)
	}
	tx.db.wakes.followers.RingAll()
}

// wakes records lanes that may have something to claim after the commit.
func (tx *ownTx) wakes(lanes ...int32) {
	if tx.woken == nil {
		tx.woken = map[int32]struct{}{}
	}
	for _, l := range lanes {
		tx.woken[l] = struct{}{}
	}
}

// namesOf reads the names of a route inside the transaction, which must not wait for another
// connection.
func (tx *ownTx) namesOf(id int32) (k routeKey, err error) {
	turn := tx.db.names.now()
	if k, ok := tx.db.names.key(id); ok {
		return k, nil
	}
	r := route{route: id}
	err = tx.query(readRoute, []any{id}, func(rows pgx.Rows) error {
		return rows.Scan(&k.source, &k.destination, &k.kind, &k.endpoint, &r.lane)
	})
	if err == nil && r.lane == 0 {
		return k, fmt.Errorf("route %d: %w", id, holdfast.ErrNotFound)
	}
	if err == nil {
		tx.after = append(tx.after, func() { tx.db.names.remember(turn, k, r) })
	}
	return k, err
}

var errRolledBack = errors.New("the server rolled the transaction back")

// rollback works even if ctx has ended: an open transaction must end.
func (tx *ownTx) rollback() {
	if !tx.begun || tx.conn.Conn().IsClosed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tx.ctx), time.Second)
	defer cancel()
	if _, err := tx.conn.Exec(ctx, "ROLLBACK", pgx.QueryExecModeSimpleProtocol); err != nil {
		_ = tx.conn.Conn().Close(ctx) // the server rolls back when the connection is gone
	}
}

// read runs a statement outside a transaction. A statement that writes must be safe to repeat: read
// may run it again if the connection was lost before its first row.
func (db *DB) read(caller context.Context, sql string, args []any, row func(rows pgx.Rows) error) error {
	ctx, cancel := context.WithTimeout(caller, db.opts.Timeout)
	defer cancel()
	for try := 1; ; try++ {
		seen, err := db.readOnce(ctx, sql, args, row)
		if seen || !db.outage.again(ctx, try, err) {
			return explainTo(caller, err)
		}
	}
}

func (db *DB) readOnce(ctx context.Context, sql string, args []any, row func(rows pgx.Rows) error) (seen bool, err error) {
	turn, _ := db.past.is()
	ctx, release := db.past.within(ctx)
	defer release()
	defer func() { err = db.past.since(turn, err, errAnother) }()
	conn, err := db.pools.own.Acquire(ctx)
	switch {
	case err != nil && ctx.Err() == nil && db.life.Err() != nil: // the pool is closed
		return false, holdfast.ErrClosed
	case err != nil:
		return false, err
	}
	defer conn.Release()
	err = each(ctx, conn.Conn(), sql, args, func(rows pgx.Rows) error {
		seen = true
		return row(rows)
	})
	if warnedAlone(conn.Conn()) && err == nil {
		err = errNotAwaited
	}
	return seen, err
}
