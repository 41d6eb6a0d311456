package sqlwrite

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/holdfast-mq/holdfast"
)

func postgresDialect() dialect {
	return dialect{begin: "begin", atomic: true, open: openPostgres, judge: judgePostgres, value: valueForPostgres}
}

// longestMessage of a server that is taken: what is asked of it has no long
// answers, and a peer that is no PostgreSQL may claim 2 GiB.
const longestMessage = 16 << 20

func openPostgres(dsn string, t *target) (driver.Connector, error) {
	conf, err := pgx.ParseConfig(dsn)
	if err != nil { // its text may hold a part of the password
		return nil, errors.New("cannot be read: write postgres://user:password@host:5432/database?sslmode=verify-full, with %XX for special characters")
	}
	if conf.Database == "" {
		return nil, errors.New("names no database")
	}
	// No prepared statement stays on a connection: poolers between us and the
	// server hand connections round.
	conf.DefaultQueryExecMode = pgx.QueryExecModeDescribeExec
	conf.DialFunc = dial
	conf.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		f := pgproto3.NewFrontend(r, w)
		f.SetMaxBodyLen(longestMessage)
		return f
	}
	t.address = net.JoinHostPort(conf.Host, strconv.Itoa(int(conf.Port))) + "/" + conf.Database
	t.hidden.Add(conf.Password)
	return connector{stdlib.GetConnector(*conf)}, nil
}

// valueForPostgres hands everything over as text: the server knows the type
// that is wanted in a place, and reads it exactly.
func valueForPostgres(v any) any {
	switch v := v.(type) {
	case nil, string:
		return v
	case decimal:
		return string(v)
	default:
		return fmt.Sprint(v) // true, 42
	}
}

func judgePostgres(err error) (verdict, bool) {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return verdict{}, false
	}
	v := verdict{number: e.Code, text: e.Message}
	v.outcome, v.code = classOfPostgres(e.Code)
	v.gone = v.code == codeGone
	v.unsure = e.Code == "40003" || e.Code[:min(len(e.Code), 2)] == "08"
	return v, true
}

// classOfPostgres goes by SQLSTATE (PostgreSQL's manual, appendix A).
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
	case "57P01", "57P02", "57P03", "57P05": // it ends, has crashed, begins, or has found us idle
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
	}
	return holdfast.Transient, codeServer
}
