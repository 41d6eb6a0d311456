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

// Errors of opening a database, and of losing it later.
var (
	// ErrTooOld means that the server is older than the oldest supported release.
	ErrTooOld = errors.New("PostgreSQL too old")
	// ErrNewer means that a newer release has written the tables. Nothing was changed.
	ErrNewer = errors.New("database of a newer release")
	// ErrForeign means that tables with our names belong to another program.
	ErrForeign = errors.New("not Holdfast's tables")
	// ErrRights means that the role lacks a right. The text names the right and the statement that
	// grants it.
	ErrRights = errors.New("missing right")
	// ErrPooler means that a pooler in between runs each transaction on another connection of the
	// server.
	ErrPooler = errors.New("pooler in transaction mode")
	// ErrNotDurable means that the server may lose what it has acknowledged.
	ErrNotDurable = errors.New("durability not given")
	// ErrEncoding means that the database cannot store every text.
	ErrEncoding = errors.New("database not in UTF-8")
	// ErrReadOnly means that the server takes no writes now, for example because it is a standby.
	// Nothing was accepted.
	ErrReadOnly = fmt.Errorf("read-only: %w", holdfast.ErrUnavailable)
	// ErrUnknown means that the connection was lost during a commit, and that the outcome could not
	// be found out: the commit may have happened or not. Repeating the call with the same ids finds
	// out.
	ErrUnknown = holdfast.ErrUnknown
)

// explain gives an error of the server or of the connection the library's meaning, and a text that
// a person can act on. It leaves an error of the caller's own ctx as it is.
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

// explainConnect says why there is no connection. The driver's own text is of use only to somebody
// who knows the driver.
func explainConnect(connect *pgconn.ConnectError) error {
	reason := &unreached{strings.Join(strings.FieldsFunc(strings.ReplaceAll(connect.Unwrap().Error(), "ValidateConnect failed: ", ""),
		func(r rune) bool { return r == '\n' || r == '\t' }), "; "), connect}
	if explained(connect) || errors.Is(connect, context.Canceled) {
		return reason
	}
	if e, ok := errors.AsType[*pgconn.PgError](connect); ok {
		return explainServer(reason, e)
	}
	return fmt.Errorf("%w: PostgreSQL cannot be reached: %s", holdfast.ErrUnavailable, reason.text) // whose deadline ended it does not matter
}

// unreached says for each address why no connection was made.
type unreached struct {
	text string
	err  error
}

func (u *unreached) Error() string { return u.text }
func (u *unreached) Unwrap() error { return u.err }

// explainTo is explain for a caller whose own ctx may have ended. Any other deadline was the
// store's, and must not look like the caller's.
func explainTo(caller context.Context, err error) error {
	if ended := caller.Err(); ended != nil {
		if errors.Is(err, ended) {
			return err
		}
		return explain(err)
	}
	if _, connecting := errors.AsType[*pgconn.ConnectError](err); !connecting && errors.Is(err, context.DeadlineExceeded) && !explained(err) {
		return fmt.Errorf("%w: PostgreSQL did not answer in time: %s", holdfast.ErrUnavailable, err.Error()) // the deadline is not the caller's
	}
	return explain(err)
}

// explained reports whether the error already has the library's meaning.
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

// explainServer explains an error that the server itself has returned.
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
		return unavailable("PostgreSQL cancelled the statement, because it took too long or an operator asked for it")
	case "25006":
		return fmt.Errorf("%w: the server is a standby now, or was made read-only: %w", ErrReadOnly, err)
	case "25P03":
		return unavailable("the transaction was idle for too long")
	case "28000", "28P01":
		return fmt.Errorf("%w: PostgreSQL refuses this user; check the user and password in the address, and pg_hba.conf: %w", ErrRights, err)
	case "3D000":
		return fmt.Errorf("%w: the address names a database that the server does not have; create it: %w", holdfast.ErrNotFound, err)
	case "42501":
		return fmt.Errorf("%w: %w", ErrRights, err)
	}
	switch e.Code[:min(2, len(e.Code))] {
	case "08", "53", "57", "58":
		return unavailable("PostgreSQL cannot do this now")
	case "40":
		return unavailable("PostgreSQL rolled the transaction back because of others")
	}
	return err
}

// lost reports whether the connection is gone, as opposed to a refusal by the server.
func lost(err error) bool {
	_, isNet := errors.AsType[net.Error](err)
	return isNet || pgconn.SafeToRetry(err) || errors.Is(err, pgconn.ErrConnClosed) || isEnd(err)
}

// blames reports whether the rows of one call can be the cause of err. Then the other calls in its
// transaction do better without it.
func blames(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return false
	}
	switch e.Code[:min(2, len(e.Code))] {
	case "21", "22", "23", "54":
		return true
	}
	// A lock timeout on a row can be one call's fault; a timeout on a whole table is nobody's.
	return e.Code == "55P03" && e.Where != ""
}

// isLocked reports whether another transaction held a lock for longer than this one was willing to
// wait.
func isLocked(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == "55P03"
}

// again reports whether the server asks for the transaction to be repeated.
func again(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (e.Code == "40001" || e.Code == "40P01" || stalePlan(e))
}

// stalePlan reports that a table has changed under a prepared statement, after an upgrade by
// another node. The driver drops the statement.
func stalePlan(e *pgconn.PgError) bool {
	return e.Code == "0A000" && (e.Routine == "RevalidateCachedQuery" || strings.Contains(e.Message, "cached plan must not change result type"))
}

// badAddress says what is wrong with a database address. It does not show a text that cannot be
// parsed, since it cannot tell which part is the password.
func badAddress(dsn string, err error) error {
	if _, parse := url.Parse(dsn); parse != nil && strings.Contains(dsn, "://") {
		return fmt.Errorf("%w: database address: it is not a URL; write postgres://user:password@host:5432/database, with %%-codes for the characters / : @ # ? %% in user and password", holdfast.ErrInvalid)
	}
	text := err.Error()
	if i := strings.LastIndex(text, "`: "); i >= 0 {
		text = text[i+len("`: "):]
	}
	return fmt.Errorf("%w: database address: %s", holdfast.ErrInvalid, text)
}
