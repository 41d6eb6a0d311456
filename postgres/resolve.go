package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
)

// resolveFor bounds the search for what became of a commit.
const resolveFor = 30 * time.Second

func isEnd(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

const transactionStatus = `SELECT coalesce(pg_xact_status($1::text::xid8), '')`

// resolve finds out what became of the transaction xid, whose COMMIT was sent
// on the lost connection and not answered: nil when it is committed. It does
// not guess: where nobody can say, the error is ErrUnknown.
func (db *DB) resolve(ctx context.Context, lost *pgx.Conn, xid string, cause error) error {
	ctx, cancel := context.WithTimeout(ctx, resolveFor)
	defer cancel()
	was := serverOf(lost)
	for try := 0; ; try++ {
		status, now, err := db.statusOf(ctx, xid)
		switch {
		case err != nil:
			cause = err
		case was.history == "" || was.history != now.history:
			return fmt.Errorf("%w: another server has taken over since, which need not know of it: %w", ErrUnknown, cause)
		case status == "committed":
			return nil
		case status == "aborted":
			return fmt.Errorf("%w: the connection was lost and the transaction rolled back: %w", holdfast.ErrUnavailable, cause)
		case status == "":
			return fmt.Errorf("%w: the server has forgotten the transaction: %w", ErrUnknown, cause)
		}
		pause := time.Duration(min(1<<min(try, 7), 100)) * 10 * time.Millisecond
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: no answer within %v: %w", ErrUnknown, resolveFor, cause)
		case <-time.After(pause/2 + rand.N(pause)): //nolint:gosec // no secret
		}
	}
}

func (db *DB) statusOf(ctx context.Context, xid string) (status string, now server, err error) {
	conn, err := db.pools.own.Acquire(ctx)
	if err != nil {
		return "", now, err
	}
	defer conn.Release()
	err = conn.QueryRow(ctx, transactionStatus, xid).Scan(&status)
	return status, serverOf(conn.Conn()), err
}
