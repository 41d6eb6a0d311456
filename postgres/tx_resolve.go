package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-mq/holdfast"
)

const (
	// transactionStatus is empty for a transaction that the server has forgotten.
	transactionStatus = `SELECT coalesce(pg_xact_status($1::text::xid8), ''), current_setting('synchronous_standby_names') <> ''`
	// endAbandoned ends a process that has the transaction open and waits for a client that is
	// gone: COMMIT has not reached it, and never will. It spares a process that is working, since
	// that may wait for a standby.
	endAbandoned = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE backend_xid = ($1::text::xid8)::xid AND usename = current_user AND wait_event = 'ClientRead'`
	hasStandbys = `SELECT current_setting('synchronous_standby_names') <> ''`
	// awaitStandby is a commit that waits for the synchronous standbys. They then have all that was
	// committed before it.
	awaitStandby = `UPDATE hf_meta SET value = value WHERE key = 'incarnation'`
)

// resolve finds out the outcome of the transaction xid, whose COMMIT was sent on the lost
// connection and not answered. It returns nil if the transaction is committed. It looks and does
// not guess: if nobody can tell, the error is ErrUnknown. It takes at most twice Options.Timeout.
func (db *DB) resolve(ctx context.Context, lost *pgx.Conn, xid string, cause error) error {
	bound := 2 * db.opts.Timeout
	ctx, cancel := db.past.search(ctx, bound)
	defer cancel()
	began, why := time.Now(), errors.New("the transaction has not ended")
	for try := 0; ; try++ {
		done, err := db.look(ctx, serverOf(lost), xid, time.Since(began) > time.Second)
		switch {
		case done && err == nil:
			return nil
		case done:
			return fmt.Errorf("%w: %s", err, cause.Error())
		case err != nil:
			why = err
		}
		if backOff(ctx, try) != nil {
			// That the server is not available tells nothing about the transaction.
			return fmt.Errorf("%w within %v: %s; the connection was lost by: %s", errOpen, bound, explain(why).Error(), cause.Error())
		}
	}
}

// onStandbys is called after each successful commit on a connection. If an operator ended a
// commit's wait for the synchronous standbys, the server has said COMMIT without them: the
// transaction is committed, but would be lost with the server. Then onStandbys waits for the
// standbys, for at most twice Options.Timeout.
func (db *DB) onStandbys(ctx context.Context, conn *pgx.Conn) error {
	if !db.past.holds(conn) {
		return errElsewhere // this history may lack what the old server has committed
	}
	if !warnedAlone(conn) {
		db.past.committed()
		return nil
	}
	bound := 2 * db.opts.Timeout
	ctx, cancel := db.past.search(ctx, bound)
	defer cancel()
	for try := 0; ; try++ {
		err := db.apart(ctx, func(ctx context.Context, now *pgx.Conn) error {
			if was := serverOf(conn); was.system == "" || was.system != serverOf(now).system || was.history != serverOf(now).history {
				return errElsewhere
			}
			return awaitStandbys(ctx, now)
		})
		if err == nil || errors.Is(err, errElsewhere) {
			return err
		}
		if backOff(ctx, try) != nil {
			return fmt.Errorf("%w: the commit did not wait for the synchronous standbys, and they did not get it within %v: %s", errOpen, bound, explain(err).Error())
		}
	}
}

var errNotAwaited = fmt.Errorf("%w: an operator, or a timeout, ended the wait for the synchronous standbys", holdfast.ErrUnavailable)

// awaitStandbys returns when the server's synchronous standbys, if it has any, have all that it has
// committed before.
func awaitStandbys(ctx context.Context, conn *pgx.Conn) error {
	needed := false
	if err := conn.QueryRow(ctx, hasStandbys).Scan(&needed); err != nil || !needed {
		return err
	}
	return awaitOn(ctx, conn)
}

func awaitOn(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, awaitStandby); err != nil {
		return err
	}
	if warnedAlone(conn) {
		return errNotAwaited
	}
	return nil
}

// apart runs fn on a separate connection: those of the pool may all be waiting for answers like the
// one that fn looks for.
func (db *DB) apart(ctx context.Context, fn func(ctx context.Context, conn *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, db.opts.Timeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, db.pools.own.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer func() {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(bounded)
	}()
	return fn(ctx, conn)
}

// look asks once. If done is true, err is the outcome of the transaction, and nil means that it is
// committed.
func (db *DB) look(ctx context.Context, was server, xid string, late bool) (done bool, err error) {
	err = db.apart(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
		done, err = lookOn(ctx, conn, was, xid, late)
		return err
	})
	return done, err
}

func lookOn(ctx context.Context, conn *pgx.Conn, was server, xid string, late bool) (done bool, err error) {
	var status string
	var standbys bool
	err = conn.QueryRow(ctx, transactionStatus, xid).Scan(&status, &standbys)
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "22023" {
		status, err = "future", nil // this history has not reached the number yet
	}
	if err != nil {
		return false, err
	}
	now := serverOf(conn)
	ended, err := judge(was, now, status)
	switch {
	case err != nil:
		return true, err
	case ended && standbys:
		err := awaitOn(ctx, conn)
		return err == nil, err
	case ended:
		return true, nil
	case late && was.history == now.history: // otherwise the number may belong to another transaction
		_, err = conn.Exec(ctx, endAbandoned, xid)
	}
	return false, err
}

// errOpen is the ErrUnknown of a transaction that may still be running. Rows that it has not
// written yet prove nothing.
var errOpen = fmt.Errorf("%w: not determined", ErrUnknown)

var errUndone = fmt.Errorf("%w: the connection was lost and the transaction rolled back", holdfast.ErrUnavailable)

// judge interprets a status. What is not committed in a history has not happened in it. A committed
// number proves the commit only if that number cannot have been given a second time.
func judge(was, now server, status string) (committed bool, err error) {
	switch {
	case was.system == "" || was.system != now.system:
		return false, fmt.Errorf("%w: the server that answers now may be another one", ErrUnknown)
	case status == "aborted", status == "future":
		return false, errUndone
	case status == "in progress":
		return false, nil
	case status == "":
		return false, fmt.Errorf("%w: the server has forgotten the transaction", ErrUnknown)
	case was.history != now.history:
		return false, fmt.Errorf("%w: the server has crashed since, or another one has taken over, which may give the transaction's number again", ErrUnknown)
	}
	return true, nil
}

func isEnd(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }
