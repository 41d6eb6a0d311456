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

// server is what a connection found out about its server. It is stored with the connection.
type server struct {
	system string // identifies the database cluster; the same after restarts and on its replicas; "": unknown
	// history identifies one line of transactions. It changes when a replica takes over, which may
	// lack some of them. It also changes when the server has crashed: then the server may reuse the
	// numbers of transactions that never reached the disk.
	history  string
	timeline string
	branch   string // of the timeline; "": no node has named it
	pid      uint32 // of the server's process; a pooler reports another number
	pooled   bool   // there is a proxy between us and the server
}

const (
	serverKey = "holdfast.server"
	// aloneKey means that the server has warned that somebody ended a commit's wait for its
	// synchronous standbys. They may lack the commit.
	aloneKey = "holdfast.alone"
)

// warnedAlone reports the warning, once.
func warnedAlone(c *pgx.Conn) bool {
	data := c.PgConn().CustomData()
	_, warned := data[aloneKey]
	delete(data, aloneKey)
	return warned
}

// serverOf returns what was found when the connection was made, even if the connection is lost
// since then.
func serverOf(c *pgx.Conn) server {
	s, _ := c.PgConn().CustomData()[serverKey].(server)
	return s
}

// atStart reports whether a setting goes into the startup message. A pooler refuses any other
// setting there, so those are made by a statement.
func atStart(setting string) bool {
	switch setting {
	case "application_name", "client_encoding", "options":
		return true
	}
	return false
}

// prepare makes each new connection apply its settings, read back the one that a promise depends
// on, and refuse a server that takes no writes. If the address names several hosts, the next one is
// tried then, whatever its target_session_attrs says.
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
		// Leave a server that takes no writes any more, so that the next connection finds the one
		// that does.
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
	// readHistory: the server restarts its statistics after each crash, and writes another timeline
	// after each promotion.
	readHistory = `SELECT c.system_identifier, left(pg_walfile_name(pg_current_wal_lsn()), 8), coalesce(extract(epoch FROM b.stats_reset)::text, 'never')
		FROM pg_control_system() AS c, pg_stat_bgwriter AS b`
)

// ready prepares a new connection for use, or returns why it cannot be used.
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

// conforming comes before all other settings: they are quoted in a text, and only with this setting
// do quotes have their standard meaning. It may be off for a role.
func conforming(ctx context.Context, conn *pgconn.PgConn) error {
	if conn.ParameterStatus("standard_conforming_strings") == "on" {
		return nil
	}
	if _, err := conn.Exec(ctx, "SET standard_conforming_strings = on").ReadAll(); err != nil {
		return fmt.Errorf("set standard_conforming_strings: %w", err)
	}
	return nil
}

// identify reads which server this is. A server that does not tell is not compared with others.
func identify(ctx context.Context, conn *pgconn.PgConn, s *server) error {
	results, err := conn.Exec(ctx, readHistory).ReadAll()
	if _, refused := errors.AsType[*pgconn.PgError](err); err != nil && (!refused || conn.IsClosed()) {
		return fmt.Errorf("read the server's identity: %w", err)
	}
	if err != nil || len(results[0].Rows) != 1 {
		return nil //nolint:nilerr // it does not tell
	}
	row := results[0].Rows[0]
	s.system, s.timeline = string(row[0]), string(row[1])
	results, err = conn.Exec(ctx, readBranch).ReadAll()
	// Class 42: there is no table yet, or it is another's, or the role may not read it. The start tells which.
	if e, told := errors.AsType[*pgconn.PgError](err); err != nil && (!told || !strings.HasPrefix(e.Code, "42")) {
		return fmt.Errorf("read the branch of the server's timeline: %w", err)
	}
	if err == nil {
		if b := parseBranch(string(results[0].Rows[0][0])); b.of == s.line().unnamed() {
			s.branch = b.name
		}
	}
	s.history = s.timeline + " " + s.branch + " " + string(row[2])
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
			where = " WHERE version() LIKE '%linux%'" // other systems may lack it
		}
		fmt.Fprintf(&b, "SELECT set_config('%s', '%s', false)%s; ", n, value, where)
	}
	return b.String(), nil
}
