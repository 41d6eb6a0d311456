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
	// transactionStatus is NULL for a transaction that the server has forgotten.
	transactionStatus = `SELECT coalesce(pg_xact_status($1::text::xid8), ''), current_setting('synchronous_standby_names') <> ''`
	// endAbandoned ends the process that still has the transaction open and
	// waits for a client that is gone: COMMIT has not reached it, and cannot
	// any more. One that is at work is let alone: it may wait for a standby.
	endAbandoned = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE backend_xid = ($1::text::xid8)::xid AND usename = current_user AND wait_event = 'ClientRead'`
	hasStandbys = `SELECT current_setting('synchronous_standby_names') <> ''`
	// awaitStandby is a commit that waits for the synchronous standbys, which
	// then have all that was committed before it.
	awaitStandby = `UPDATE hf_meta SET value = value WHERE key = 'incarnation'`
)

// resolve finds out what became of the transaction xid, whose COMMIT was sent
// on the lost connection and not answered: nil when it is committed. It looks
// and does not guess: where nobody can say, the error is ErrUnknown. It takes
// at most twice Options.Timeout.
func (db *DB) resolve(ctx context.Context, lost *pgx.Conn, xid string, cause error) error {
	bound := 2 * db.opts.Timeout
	ctx, cancel := context.WithTimeout(ctx, bound)
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
			// That the server is not available says nothing of the transaction.
			return fmt.Errorf("%w within %v: %s; the connection was lost by: %s", errOpen, bound, explain(why).Error(), cause.Error())
		}
	}
}

// onStandbys waits once more for the synchronous standbys when the server has
// said COMMIT without them, because an operator ended its wait.
func (db *DB) onStandbys(ctx context.Context, conn *pgx.Conn, xid string) error {
	if !warnedAlone(conn) {
		return nil
	}
	return db.resolve(context.WithoutCancel(ctx), conn, xid, errors.New("the commit did not wait for the synchronous standbys"))
}

// awaitStandbys returns when the synchronous standbys, if there are any, have
// all that was committed before.
func (db *DB) awaitStandbys(ctx context.Context) error {
	needed := false
	if err := db.read(ctx, hasStandbys, nil, func(rows pgx.Rows) error { return rows.Scan(&needed) }); err != nil || !needed {
		return err
	}
	return db.read(ctx, awaitStandby, nil, nil)
}

// look asks once, on a connection of its own: those of the pool may all be
// waiting for answers like this one. done: err says what became of the
// transaction, nil that it is committed.
func (db *DB) look(ctx context.Context, was server, xid string, late bool) (done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, db.opts.Timeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, db.pools.own.Config().ConnConfig)
	if err != nil {
		return false, err
	}
	defer func() {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(bounded)
	}()
	var status string
	var standbys bool
	err = conn.QueryRow(ctx, transactionStatus, xid).Scan(&status, &standbys)
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "22023" {
		status, err = "future", nil // this history has not come to the number yet
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
		_, err := conn.Exec(ctx, awaitStandby)
		return err == nil && !warnedAlone(conn), err
	case ended:
		return true, nil
	case late && was.history == now.history: // else the number may be another's
		_, err = conn.Exec(ctx, endAbandoned, xid)
	}
	return false, err
}

// errOpen is the ErrUnknown of a transaction that may still be at work: what it
// has not done yet proves nothing.
var errOpen = fmt.Errorf("%w: nothing found out", ErrUnknown)

var errUndone = fmt.Errorf("%w: the connection was lost and the transaction rolled back", holdfast.ErrUnavailable)

// judge says what a status means. What is not committed in a history has not
// happened for whoever is in it. That something of this number is committed
// says as much only where the number cannot have been given a second time.
func judge(was, now server, status string) (committed bool, err error) {
	switch {
	case was.system == "" || was.system != now.system:
		return false, fmt.Errorf("%w: nothing shows that it is the same server that answers now", ErrUnknown)
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
