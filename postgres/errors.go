package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-mq/holdfast"
)

// Errors of opening a database, and of losing it.
var (
	// ErrTooOld says that the server is older than what is supported.
	ErrTooOld = errors.New("PostgreSQL too old")
	// ErrNewer says that the tables are of a newer release. Nothing was changed.
	ErrNewer = errors.New("database of a newer release")
	// ErrForeign says that tables with our names are somebody else's.
	ErrForeign = errors.New("not Holdfast's tables")
	// ErrRights says that the role lacks a right; the text names it and the
	// statement that gives it.
	ErrRights = errors.New("missing right")
	// ErrPooler says that a pooler stands between that hands each transaction
	// to another connection.
	ErrPooler = errors.New("pooler in transaction mode")
	// ErrNotDurable says that the server does not keep what it acknowledges.
	ErrNotDurable = errors.New("durability not given")
	// ErrEncoding says that the database cannot keep every text.
	ErrEncoding = errors.New("database not in UTF-8")
	// ErrReadOnly says that the server takes no writes now, as a standby does.
	// Nothing was accepted.
	ErrReadOnly = fmt.Errorf("read-only: %w", holdfast.ErrUnavailable)
	// ErrUnknown says that the connection was lost during a commit and that
	// nobody could be asked what became of it: it may be committed or not.
	// The same call with the same ids finds out.
	ErrUnknown = holdfast.ErrUnknown
)

// explain gives an error of the server, or of the way to it, the library's
// meaning and a text a person can act on. What a caller's own ctx said stays.
func explain(err error) error {
	if connect, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return explainConnect(connect)
	}
	if err == nil || explained(err) {
		return err
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return explainServer(err, e)
	}
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, context.DeadlineExceeded), pgconn.Timeout(err):
		return fmt.Errorf("%w: PostgreSQL did not answer in time: %w", holdfast.ErrUnavailable, err)
	case lost(err):
		return fmt.Errorf("%w: connection to PostgreSQL lost: %w", holdfast.ErrUnavailable, err)
	}
	return err
}

// explainConnect says why there is no connection. The driver's own text is for
// one who knows the driver.
func explainConnect(connect *pgconn.ConnectError) error {
	reason := &unreached{strings.Join(strings.FieldsFunc(strings.ReplaceAll(connect.Unwrap().Error(), "ValidateConnect failed: ", ""),
		func(r rune) bool { return r == '\n' || r == '\t' }), "; "), connect}
	if explained(connect) || errors.Is(connect, context.Canceled) {
		return reason
	}
	if e, ok := errors.AsType[*pgconn.PgError](connect); ok {
		return explainServer(reason, e)
	}
	return fmt.Errorf("%w: PostgreSQL cannot be reached: %s", holdfast.ErrUnavailable, reason.text) // whose deadline it was is nobody's matter
}

// unreached tells of each address why it did not do.
type unreached struct {
	text string
	err  error
}

func (u *unreached) Error() string { return u.text }
func (u *unreached) Unwrap() error { return u.err }

// explainTo is explain for a caller whose ctx may be what has ended. Any other
// bound was the store's own, which is no matter of the caller's ctx.
func explainTo(caller context.Context, err error) error {
	if ended := caller.Err(); ended != nil {
		if errors.Is(err, ended) {
			return err
		}
		return explain(err)
	}
	if _, connecting := errors.AsType[*pgconn.ConnectError](err); !connecting && errors.Is(err, context.DeadlineExceeded) && !explained(err) {
		return fmt.Errorf("%w: PostgreSQL did not answer in time: %s", holdfast.ErrUnavailable, err.Error()) // it is not the caller's
	}
	return explain(err)
}

// explained says whether the error has the library's meaning already.
func explained(err error) bool {
	for _, known := range []error{
		holdfast.ErrUnavailable, holdfast.ErrDiskFull, holdfast.ErrInvalid, holdfast.ErrConflict, holdfast.ErrNotFound, holdfast.ErrState,
		holdfast.ErrClosed, ErrTooOld, ErrNewer, ErrForeign, ErrRights, ErrPooler, ErrNotDurable, ErrEncoding, ErrUnknown,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// explainServer is about what the server itself said.
func explainServer(err error, e *pgconn.PgError) error {
	unavailable := func(what string) error { return fmt.Errorf("%w: %s: %w", holdfast.ErrUnavailable, what, err) }
	switch e.Code {
	case diskFull:
		return fmt.Errorf("%w: of the database server: %w", holdfast.ErrDiskFull, err)
	case "53300":
		return unavailable("PostgreSQL has no free connection (max_connections, or the role's or database's limit)")
	case "57P01", "57P02", "57P05":
		return unavailable("PostgreSQL ended the connection")
	case "57P03":
		return unavailable("PostgreSQL is starting or stopping")
	case "55P03":
		return unavailable("another transaction holds a lock for too long")
	case "57014":
		return unavailable("PostgreSQL gave the statement up, because it took too long or an operator cancelled it")
	case "25006":
		return fmt.Errorf("%w: the server is a standby now, or was made read-only: %w", ErrReadOnly, err)
	case "25P03":
		return unavailable("the transaction was idle for too long")
	case "28000", "28P01":
		return fmt.Errorf("%w: PostgreSQL does not let this user in; look at user and password of the address, and at pg_hba.conf: %w", ErrRights, err)
	case "3D000":
		return fmt.Errorf("%w: the address names a database that the server does not have; create it: %w", holdfast.ErrNotFound, err)
	case "42501":
		return fmt.Errorf("%w: %w", ErrRights, err)
	}
	switch e.Code[:min(2, len(e.Code))] {
	case "08", "53", "57", "58":
		return unavailable("PostgreSQL cannot do this now")
	case "40":
		return unavailable("PostgreSQL undid the transaction for the sake of others")
	}
	return err
}

// lost says whether the connection is gone, rather than that the server
// refused something.
func lost(err error) bool {
	_, isNet := errors.AsType[net.Error](err)
	return isNet || pgconn.SafeToRetry(err) || errors.Is(err, pgconn.ErrConnClosed) || isEnd(err)
}

// blames says whether one call's own rows can be at fault for err, so that
// others that share its transaction are better off without it.
func blames(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return false
	}
	switch e.Code[:min(2, len(e.Code))] {
	case "21", "22", "23", "54":
		return true
	}
	// A wait for a row tells which one; a wait for a whole table is nobody's fault.
	return e.Code == "55P03" && e.Where != ""
}

// isLocked says whether somebody else had locked what was to be written, for
// longer than the transaction wanted to wait.
func isLocked(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == "55P03"
}

// again says whether the server wants the transaction to be done once more.
func again(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (e.Code == "40001" || e.Code == "40P01" || stalePlan(e))
}

// stalePlan says that a table has changed under a prepared statement: an
// upgrade by another node. The driver forgets the statement.
func stalePlan(e *pgconn.PgError) bool {
	return e.Code == "0A000" && (e.Routine == "RevalidateCachedQuery" || strings.Contains(e.Message, "cached plan must not change result type"))
}

// badAddress says what is wrong with a database's address. A text that cannot
// be parsed is not shown: nobody could say which part of it is the password.
func badAddress(dsn string, err error) error {
	if _, parse := url.Parse(dsn); parse != nil && strings.Contains(dsn, "://") {
		return fmt.Errorf("%w: database address: it is no URL; write postgres://user:password@host:5432/database, with %%-codes for the characters / : @ # ? %% in user and password", holdfast.ErrInvalid)
	}
	text := err.Error()
	if i := strings.LastIndex(text, "`: "); i >= 0 {
		text = text[i+len("`: "):]
	}
	return fmt.Errorf("%w: database address: %s", holdfast.ErrInvalid, text)
}
