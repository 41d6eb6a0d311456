package sqlwrite

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/exchange"
	"github.com/holdfast-mq/holdfast/internal/sqltext"
)

func postgresDialect() dialect {
	return dialect{
		// Set for one transaction only, so that a pooler may share connections.
		begin:    "begin; set local client_encoding = 'UTF8'; set local standard_conforming_strings = on; set local timezone = 'UTC'; set local datestyle = 'ISO, YMD'; set local intervalstyle = 'postgres'",
		readOnly: "show transaction_read_only", yes: "on", atomic: true,
		open: openPostgres, run: runPostgres, judge: judgePostgres, bind: bindPostgres,
	}
}

// longestMessage limits a message from the server. Our requests have no long answers, and a peer
// that is not PostgreSQL may announce 2 GiB.
const longestMessage = 16 << 20

func openPostgres(dsn string, t *target) (driver.Connector, error) {
	conf, err := pgx.ParseConfig(dsn)
	if err != nil { // the error may quote a part of the password
		return nil, errors.New("cannot be read: write postgres://user:password@host:5432/database?sslmode=verify-full, with %XX for special characters")
	}
	if conf.Database == "" {
		return nil, errors.New("names no database")
	}
	for name := range conf.RuntimeParams {
		if slices.Contains([]string{"client_encoding", "timezone", "datestyle", "standard_conforming_strings", "intervalstyle"}, strings.ToLower(name)) {
			return nil, errors.New("has " + strings.ToLower(name) + ": sessions are in UTF-8 and UTC; remove it")
		}
	}
	// No prepared statement stays on a connection: poolers between us and the server share
	// connections.
	conf.DefaultQueryExecMode = pgx.QueryExecModeDescribeExec
	if conf.DialFunc = dial; conf.TLSConfig != nil {
		conf.DialFunc = dialForTLS
	}
	conf.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		f := pgproto3.NewFrontend(r, w)
		f.SetMaxBodyLen(longestMessage)
		return f
	}
	t.plain = conf.TLSConfig == nil && !isHere(conf.Host)
	for _, other := range conf.Fallbacks { // includes the second attempt of allow and prefer
		t.plain = t.plain || other.TLSConfig == nil && !isHere(other.Host)
	}
	t.address = net.JoinHostPort(conf.Host, strconv.Itoa(int(conf.Port))) + "/" + conf.Database
	t.hidden.Add(conf.Password)
	return connector{stdlib.GetConnector(*conf)}, nil
}

// errNoTLS marks what the driver reports only in words.
var errNoTLS = errors.New("the server has no TLS")

// dialForTLS connects for a driver that asks for TLS first.
func dialForTLS(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &tlsAsked{Conn: conn}, nil
}

// tlsAsked notices the first byte from the server, its answer to the request for TLS.
type tlsAsked struct {
	net.Conn
	answered bool // set by the reader; the handshake uses one goroutine
}

func (c *tlsAsked) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.answered && n > 0 {
		if c.answered = true; n == 1 && b[0] == 'N' {
			return 0, errNoTLS
		}
	}
	return n, err
}

// bindPostgres leaves the values unchanged: the database knows their types.
func bindPostgres(_ sqltext.Statement, values []jsontext.Value) ([]any, *holdfast.Failure) {
	args := make([]any, len(values))
	for i, v := range values {
		args[i] = v
	}
	return args, nil
}

// runPostgres asks for the types of the placeholders and fills them. The statement has no name. The
// transaction keeps the connection, even in a pooler.
func runPostgres(ctx context.Context, conn *sql.Conn, s sqltext.Statement, args []any) (rows int64, at stage, err error) {
	at = preparing
	lost := conn.Raw(func(c any) error {
		known := c.(*stdlib.Conn).Conn()
		pg := known.PgConn()
		var values [][]byte
		if values, err = filled(ctx, pg, known.TypeMap(), s, args); err != nil {
			return nil //nolint:nilerr // it is the database's, or ours, and not about the connection
		}
		at = writing
		var tag pgconn.CommandTag
		tag, err = pg.ExecPrepared(ctx, "", values, nil, nil).Close()
		rows = tag.RowsAffected()
		return nil
	})
	if lost != nil {
		err = lost
	}
	return rows, at, err
}

func judgePostgres(err error) (verdict, bool) {
	e, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case ok:
	case errors.Is(err, errNoTLS):
		return verdict{outcome: holdfast.LaneFault, code: exchange.TLS, number: "that it has no TLS"}, true
	default:
		return verdict{}, false
	}
	v := verdict{number: e.Code, text: e.Message}
	v.outcome, v.code = classOfPostgres(e.Code)
	if severity := cmp.Or(e.SeverityUnlocalized, e.Severity); v.code == codeUnknown && (severity == "FATAL" || severity == "PANIC") {
		v.code = codeServer // it ends the connection, which no raised error does
	}
	v.gone = v.code == codeGone
	v.unsure = e.Code == "40003" || e.Code[:min(len(e.Code), 2)] == "08"
	return v, true
}

// classOfPostgres classifies by SQLSTATE (PostgreSQL's manual, appendix A).
func classOfPostgres(state string) (holdfast.Outcome, string) {
	switch state {
	case "23505":
		return holdfast.Permanent, codeDuplicate
	case "42501":
		return holdfast.Permanent, codeDenied
	case "40P01":
		return holdfast.Transient, codeDeadlock
	case "40002":
		return holdfast.Permanent, codeConstraint
	case "25006":
		return holdfast.LaneFault, codeReadOnly
	case "53100":
		return holdfast.Transient, codeDiskFull
	case "53300":
		return holdfast.Transient, codeConnections
	case "57P01", "57P02", "57P03", "57P05", "25P03", "25P04": // it ends, has crashed, begins, has found us idle, or too long in a transaction
		return holdfast.Transient, codeGone
	case "57014":
		return holdfast.Transient, codeInterrupt
	case "57P04", "3D000":
		return holdfast.LaneFault, codeDatabase
	}
	switch state[:min(len(state), 2)] {
	case "23", "44":
		return holdfast.Permanent, codeConstraint
	case "21", "22", "54":
		return holdfast.Permanent, codeData
	case "0A", "2F", "38", "39", "3F", "42":
		return holdfast.Permanent, codeSQL
	case "P0":
		return holdfast.Permanent, codeRaised
	case "28":
		return holdfast.LaneFault, codeCredentials
	case "40":
		return holdfast.Transient, codeSerial
	case "55":
		return holdfast.Transient, codeLock
	case "53":
		return holdfast.Transient, codeResources
	case "08", "58", "F0", "HV", "XX": // another server behind a table, the system, a setting, an error within
		return holdfast.Transient, codeServer
	}
	return holdfast.Transient, codeUnknown
}
