package sqlwrite_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/sqlwrite"
)

func TestFaultsOfAConfiguration(t *testing.T) {
	t.Parallel()
	one := map[string]string{"Book": "insert into orders (id) values (:_id)"}
	for name, c := range map[string]struct {
		conf  sqlwrite.Config
		field string
		want  string
	}{
		"no driver":            {sqlwrite.Config{DSN: "/x", Statements: one}, "Driver", "one of mysql, postgres, sqlite, sqlserver"},
		"another driver":       {sqlwrite.Config{Driver: "oracle", DSN: "hunter2", Statements: one}, "Driver", `"oracle"`},
		"no DSN":               {sqlwrite.Config{Driver: "sqlite", Statements: one}, "DSN", "must not be empty"},
		"a relative path":      {sqlwrite.Config{Driver: "sqlite", DSN: "hunter2.db", Statements: one}, "DSN", "absolute path"},
		"no URL":               {sqlwrite.Config{Driver: "postgres", DSN: "postgres://u:hunter2@h:port/db", Statements: one}, "DSN", "cannot be read"},
		"no database":          {sqlwrite.Config{Driver: "mysql", DSN: "u:hunter2@tcp(h:1)/", Statements: one}, "DSN", "names no database"},
		"several at a time":    {sqlwrite.Config{Driver: "mysql", DSN: "u:hunter2@tcp(h:1)/d?multiStatements=true", Statements: one}, "DSN", "multiStatements"},
		"values in the text":   {sqlwrite.Config{Driver: "mysql", DSN: "u:hunter2@tcp(h:1)/d?interpolateParams=true", Statements: one}, "DSN", "interpolateParams"},
		"weak sessions":        {sqlwrite.Config{Driver: "mysql", DSN: "u:hunter2@tcp(h:1)/d?sql_mode=''", Statements: one}, "DSN", "sql_mode: sessions are strict"}, // F1-106
		"another zone":         {sqlwrite.Config{Driver: "mysql", DSN: "u:hunter2@tcp(h:1)/d?time_zone='SYSTEM'", Statements: one}, "DSN", "time_zone"},
		"another charset":      {sqlwrite.Config{Driver: "mysql", DSN: "u:hunter2@tcp(h:1)/d?charset=latin1", Statements: one}, "DSN", "charset"},
		"one of several":       {sqlwrite.Config{Driver: "mysql", DSN: "u:hunter2@tcp(h:1)/d?charset=utf8mb4,latin1", Statements: one}, "DSN", "charset"},
		"another collation":    {sqlwrite.Config{Driver: "mysql", DSN: "u:hunter2@tcp(h:1)/d?collation=latin1_swedish_ci", Statements: one}, "DSN", "collation"},
		"another encoding":     {sqlwrite.Config{Driver: "postgres", DSN: "postgres://u:hunter2@h/d?client_encoding=latin1", Statements: one}, "DSN", "client_encoding"},
		"no type":              {sqlwrite.Config{Driver: "mysql", DSN: "u:hunter2@tcp(h:1)/d", Statements: map[string]string{"Book": "insert into orders (n) values (:n)"}}, "Types", "statement Book takes it"},
		"no such type":         {sqlwrite.Config{Driver: "sqlite", DSN: "/x", Statements: one, Types: map[string]string{"n": "number"}}, "Types", "write one of text, integer"},
		"no TLS":               {sqlwrite.Config{Driver: "mysql", DSN: "u:hunter2@tcp(h:1)/d", Statements: one}, "DSN", "another machine without TLS"}, // F1-109
		"perhaps TLS":          {sqlwrite.Config{Driver: "mysql", DSN: "u:hunter2@tcp(h:1)/d?tls=preferred", Statements: one}, "DSN", "another machine without TLS"},
		"a cleartext password": {sqlwrite.Config{Driver: "mysql", DSN: "u:hunter2@tcp(h:1)/d?allowCleartextPasswords=true", Statements: one, Unencrypted: true}, "DSN", "allowCleartextPasswords"},
		"no sslmode":           {sqlwrite.Config{Driver: "postgres", DSN: "postgres://u:hunter2@h/d", Statements: one}, "DSN", "another machine without TLS"},
		"a second host":        {sqlwrite.Config{Driver: "postgres", DSN: "postgres://u:hunter2@127.0.0.1,h/d?sslmode=disable", Statements: one}, "DSN", "another machine without TLS"},
		"no encrypt":           {sqlwrite.Config{Driver: "sqlserver", DSN: "sqlserver://u:hunter2@h?database=d", Statements: one}, "DSN", "another machine without TLS"},
		"no DSN of MySQL":      {sqlwrite.Config{Driver: "mysql", DSN: "u:hunter2@h", Statements: one}, "DSN", "cannot be read"},
		"an unknown TLS":       {sqlwrite.Config{Driver: "mysql", DSN: "u:hunter2@tcp(h:1)/d?tls=hunter2", Statements: one}, "DSN", ""},
		"no database there":    {sqlwrite.Config{Driver: "sqlserver", DSN: "sqlserver://u:hunter2@h", Statements: one}, "DSN", "no database"},
		"no URL of SQL Server": {sqlwrite.Config{Driver: "sqlserver", DSN: "sqlserver://u:hunter2@h:port?database=d", Statements: one}, "DSN", "cannot be read"},
		"no statements":        {sqlwrite.Config{Driver: "sqlite", DSN: "/x"}, "Statements", "name one, or set Raw"},
		"two in one":           {sqlwrite.Config{Driver: "sqlite", DSN: "/x", Statements: map[string]string{"Two": "select 1; select 2"}}, "Statements", "second statement"},
		"an unknown own":       {sqlwrite.Config{Driver: "sqlite", DSN: "/x", Statements: map[string]string{"Own": "select :_created"}}, "Statements", ":_created"},
		"connections":          {sqlwrite.Config{Driver: "sqlite", DSN: "/x", Statements: one, Connections: -1}, "Connections", "negative"},
	} {
		_, err := sqlwrite.New(c.conf)
		fault, ok := errors.AsType[*holdfast.FieldError](err)
		if !ok || fault.Field != c.field || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v, want %s %s", name, err, c.field, c.want)
		}
	}
	for dsn, driver := range map[string]string{ // F1-109: nothing is wrong with these
		"u:x@tcp(127.0.0.1:1)/d": "mysql", "u:x@unix(/run/mysqld.sock)/d": "mysql", "u:x@tcp(h:1)/d?tls=true": "mysql", "u:x@tcp(localhost)/d?charset=utf8mb4&collation=utf8mb4_bin": "mysql",
		"postgres://u:x@[::1]/d": "postgres", "postgres:///d?host=/run/postgresql": "postgres", "postgres://u:x@h,i/d?sslmode=require": "postgres",
		"sqlserver://u:x@h?database=d&encrypt=true": "sqlserver", "sqlserver://u:x@localhost?database=d": "sqlserver",
	} {
		w, err := sqlwrite.New(sqlwrite.Config{Driver: driver, DSN: dsn, Statements: one})
		if err != nil {
			t.Errorf("%s: %v", dsn, err)
			continue
		}
		w.Close()
	}
	_, err := sqlwrite.New(sqlwrite.Config{Driver: "sqlite", Connections: -1, Statements: map[string]string{"A": "commit", "B": ""}})
	for _, want := range []string{"DSN", "Connections", `"A"`, `"B"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s among all faults", err, want)
		}
	}
}
