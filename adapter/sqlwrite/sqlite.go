package sqlwrite

import (
	"context"
	"database/sql/driver"
	"errors"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/sqltext"
)

func sqliteDialect() dialect {
	return dialect{
		begin:  "begin immediate", // SQLite cannot wait for a lock that is taken later
		atomic: true, local: true,
		open: openSQLite, run: run, judge: judgeSQLite, declared: true, bind: bindSQLite,
	}
}

// opener makes connections from a driver's connection string.
type opener struct {
	name string
	of   driver.Driver
}

func (o opener) Connect(context.Context) (driver.Conn, error) { return o.of.Open(o.name) }
func (o opener) Driver() driver.Driver                        { return o.of }

// openSQLite never creates a file: a wrong path would swallow all messages.
func openSQLite(dsn string, t *target) (driver.Connector, error) {
	if !filepath.IsAbs(dsn) || strings.ContainsAny(dsn, "\r\n\x00") {
		return nil, errors.New("must be the absolute path of a SQLite file, and nothing else")
	}
	t.address = dsn
	path := filepath.ToSlash(dsn)
	if !strings.HasPrefix(path, "/") { // a drive letter
		path = "/" + path
	}
	u := url.URL{Scheme: "file", Path: path, RawQuery: "mode=rw&_pragma=busy_timeout(5000)&_pragma=foreign_keys(1)"}
	return opener{u.String(), &sqlite.Driver{}}, nil
}

// bindSQLite passes decimals as SQLite's numbers. Their digits are few enough to be kept.
func bindSQLite(s sqltext.Statement, values []jsontext.Value) ([]any, *holdfast.Failure) {
	args, f := bindSigned(s, values)
	for i, v := range args {
		text, ok := v.(string)
		if !ok || s.Types[i].Name != sqltext.Decimal {
			continue
		}
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			args[i] = n
		} else if args[i], err = strconv.ParseFloat(text, 64); err != nil {
			return nil, unfitting(s.Names[i], err)
		}
	}
	return args, f
}

func judgeSQLite(err error) (verdict, bool) {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return verdict{}, false
	}
	v := verdict{number: strconv.Itoa(e.Code()), text: e.Error()}
	v.outcome, v.code = classOfSQLite(e.Code())
	// An interrupted commit may have been done.
	v.unsure = v.outcome == holdfast.Transient && v.code != codeLock
	return v, true
}

func classOfSQLite(code int) (holdfast.Outcome, string) {
	switch code {
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_ROWID:
		return holdfast.Permanent, codeDuplicate
	case sqlite3.SQLITE_CONSTRAINT_TRIGGER:
		return holdfast.Permanent, codeRaised
	}
	switch code & 0xff {
	case sqlite3.SQLITE_CONSTRAINT:
		return holdfast.Permanent, codeConstraint
	case sqlite3.SQLITE_ERROR, sqlite3.SQLITE_RANGE:
		return holdfast.Permanent, codeSQL
	case sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG:
		return holdfast.Permanent, codeData
	case sqlite3.SQLITE_AUTH:
		return holdfast.Permanent, codeDenied
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return holdfast.Transient, codeLock
	case sqlite3.SQLITE_INTERRUPT:
		return holdfast.Transient, codeInterrupt
	case sqlite3.SQLITE_FULL:
		return holdfast.Transient, codeDiskFull
	case sqlite3.SQLITE_NOMEM:
		return holdfast.Transient, codeResources
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT:
		return holdfast.LaneFault, codeDatabase
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return holdfast.LaneFault, codeReadOnly
	}
	return holdfast.Transient, codeServer
}
