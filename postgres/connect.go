package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// server is what a connection found at its other end, kept with it.
type server struct {
	history string // which server's transactions the numbers count; "": it did not tell
	pid     uint32 // of the process that answered
	pooled  bool   // something stands between us and the server
}

const serverKey = "holdfast.server"

// serverOf returns what was found when the connection was made, also when it
// has been lost since.
func serverOf(c *pgx.Conn) server {
	s, _ := c.PgConn().CustomData()[serverKey].(server)
	return s
}

// atStart are the settings that go with the first message; the others are made
// by a statement, because a pooler knows only these and refuses the rest.
func atStart(setting string) bool {
	switch setting {
	case "application_name", "client_encoding", "options":
		return true
	}
	return false
}

// prepare has each new connection make its settings, read back those that a
// promise hangs on, and refuse a server that cannot be written to: of several
// hosts in the address the next one is tried then.
func prepare(c *pgxpool.Config) {
	cc := c.ConnConfig
	settings := map[string]string{}
	maps.DeleteFunc(cc.RuntimeParams, func(name, value string) bool {
		if !atStart(name) {
			settings[name] = value
		}
		return !atStart(name)
	})
	cc.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error { return makeReady(ctx, conn, settings) }
}

const (
	readBack = `SELECT current_setting('synchronous_commit'), pg_backend_pid(), pg_is_in_recovery(), current_setting('transaction_read_only')`
	// readHistory changes when another server takes over: what a replica never
	// got is not in its history, and the same numbers mean other transactions.
	readHistory = `SELECT system_identifier || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8) FROM pg_control_system()`
)

func makeReady(ctx context.Context, conn *pgconn.PgConn, settings map[string]string) error {
	text, err := setting(conn, settings)
	if err != nil {
		return err
	}
	results, err := conn.Exec(ctx, text+readBack).ReadAll()
	if err != nil {
		return fmt.Errorf("make settings: %w", err)
	}
	row := results[len(results)-1].Rows[0]
	synchronous, pid, standby, readOnly := string(row[0]), string(row[1]), string(row[2]), string(row[3])
	switch {
	case standby == "t":
		return fmt.Errorf("%w: the server is a standby (in recovery)", ErrReadOnly)
	case readOnly == "on":
		return fmt.Errorf("%w: transactions are read-only there (default_transaction_read_only)", ErrReadOnly)
	case synchronous != settings["synchronous_commit"]:
		return fmt.Errorf("%w: synchronous_commit was set to %s for this session and is %s", ErrNotDurable, settings["synchronous_commit"], synchronous)
	}
	s := server{pid: conn.PID(), pooled: pid != fmt.Sprint(conn.PID())}
	results, err = conn.Exec(ctx, readHistory).ReadAll()
	if _, refused := errors.AsType[*pgconn.PgError](err); err != nil && !refused {
		return fmt.Errorf("read the server's identity: %w", err)
	}
	if err == nil && len(results[0].Rows) == 1 {
		s.history = string(results[0].Rows[0][0])
	}
	conn.CustomData()[serverKey] = s
	return nil
}

func setting(conn *pgconn.PgConn, settings map[string]string) (string, error) {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		n, err := conn.EscapeString(name)
		if err != nil {
			return "", err
		}
		value, err := conn.EscapeString(settings[name])
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "SELECT set_config('%s', '%s', false); ", n, value)
	}
	return b.String(), nil
}
