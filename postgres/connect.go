package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-mq/holdfast"
)

// server is what a connection found at its other end, kept with it.
type server struct {
	system string // which database cluster it is, over restarts, on each of its replicas; "": it did not tell
	// history tells one line of transactions from another. It changes when a
	// replica takes over, which need not have got all there was, and when a
	// server has crashed: then it gives numbers once more that it had given to
	// transactions of which nothing was on the disk yet.
	history  string
	timeline string
	pid      uint32 // of the server's process, also behind a pooler, which tells another number
	pooled   bool   // something stands between us and the server
}

const (
	serverKey = "holdfast.server"
	// aloneKey: the server has warned that somebody ended a commit's wait for
	// its synchronous standbys, which need not have it.
	aloneKey = "holdfast.alone"
)

// warnedAlone tells of the warning once.
func warnedAlone(c *pgx.Conn) bool {
	data := c.PgConn().CustomData()
	_, warned := data[aloneKey]
	delete(data, aloneKey)
	return warned
}

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

// prepare has each new connection make its settings, read back the one that a
// promise hangs on, and refuse a server that cannot be written to: of several
// hosts in the address the next one is tried then, whatever the address's
// target_session_attrs says.
func prepare(c *pgxpool.Config, met func(ctx context.Context, s server) error) {
	cc := c.ConnConfig
	settings := map[string]string{}
	maps.DeleteFunc(cc.RuntimeParams, func(name, value string) bool {
		if !atStart(name) {
			settings[name] = value
		}
		return !atStart(name)
	})
	cc.OnNotice = func(conn *pgconn.PgConn, n *pgconn.Notice) {
		if n.Routine == "SyncRepWaitForLSN" {
			conn.CustomData()[aloneKey] = true
		}
	}
	cc.OnPgError = func(_ *pgconn.PgConn, e *pgconn.PgError) bool {
		// A server that takes no writes any more is left, so that the next
		// connection finds the one that does.
		return !strings.EqualFold(e.SeverityUnlocalized, "FATAL") && e.Code != "25006"
	}
	cc.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		s, err := ready(ctx, conn, settings)
		if err == nil && met != nil {
			err = met(ctx, s)
		}
		conn.CustomData()[serverKey] = s
		return err
	}
}

const (
	readBack = `SELECT current_setting('synchronous_commit'), pg_backend_pid(), pg_is_in_recovery(), current_setting('transaction_read_only')`
	// readHistory: the server counts its statistics anew after each crash, and
	// after each promotion it writes another timeline.
	readHistory = `SELECT c.system_identifier, left(pg_walfile_name(pg_current_wal_lsn()), 8), coalesce(extract(epoch FROM b.stats_reset)::text, 'never')
		FROM pg_control_system() AS c, pg_stat_bgwriter AS b`
)

// ready makes a new connection fit for use, or says why it is not.
func ready(ctx context.Context, conn *pgconn.PgConn, settings map[string]string) (s server, err error) {
	if err := conforming(ctx, conn); err != nil {
		return s, err
	}
	text, err := setting(conn, settings)
	if err != nil {
		return s, err
	}
	results, err := conn.Exec(ctx, text+readBack).ReadAll()
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && !conn.IsClosed() {
		return s, fmt.Errorf("%w: a setting of the database address: %w", holdfast.ErrInvalid, e)
	} else if err != nil {
		return s, fmt.Errorf("make settings: %w", err)
	}
	row := results[len(results)-1].Rows[0]
	synchronous, pid, standby, readOnly := string(row[0]), string(row[1]), string(row[2]), string(row[3])
	switch {
	case standby == "t":
		return s, fmt.Errorf("%w: the server is a standby (in recovery)", ErrReadOnly)
	case readOnly == "on":
		return s, fmt.Errorf("%w: its transactions are read-only (default_transaction_read_only)", ErrReadOnly)
	case synchronous != settings["synchronous_commit"]:
		return s, fmt.Errorf("%w: synchronous_commit was set to %s for this session and is %s", ErrNotDurable, settings["synchronous_commit"], synchronous)
	}
	number, err := strconv.ParseUint(pid, 10, 32)
	if err != nil {
		return s, fmt.Errorf("read the number of the server's process: %w", err)
	}
	s.pid, s.pooled = uint32(number), uint32(number) != conn.PID()
	return s, identify(ctx, conn, &s)
}

// conforming comes before all other settings: what they are is written into a
// text, whose quotes mean what the standard says only with this one, and a role
// may have it off.
func conforming(ctx context.Context, conn *pgconn.PgConn) error {
	if conn.ParameterStatus("standard_conforming_strings") == "on" {
		return nil
	}
	if _, err := conn.Exec(ctx, "SET standard_conforming_strings = on").ReadAll(); err != nil {
		return fmt.Errorf("set standard_conforming_strings: %w", err)
	}
	return nil
}

// identify asks which server it is. One that does not tell is none to compare
// with others.
func identify(ctx context.Context, conn *pgconn.PgConn, s *server) error {
	results, err := conn.Exec(ctx, readHistory).ReadAll()
	if _, refused := errors.AsType[*pgconn.PgError](err); err != nil && (!refused || conn.IsClosed()) {
		return fmt.Errorf("read the server's identity: %w", err)
	}
	if err == nil && len(results[0].Rows) == 1 {
		row := results[0].Rows[0]
		s.system, s.timeline = string(row[0]), string(row[1])
		s.history = s.timeline + " " + string(row[2])
	}
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
		where := ""
		if name == "client_connection_check_interval" {
			where = " WHERE version() LIKE '%linux%'" // other systems may not have it
		}
		fmt.Fprintf(&b, "SELECT set_config('%s', '%s', false)%s; ", n, value, where)
	}
	return b.String(), nil
}
