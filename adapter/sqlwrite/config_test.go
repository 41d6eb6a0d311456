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
	_, err := sqlwrite.New(sqlwrite.Config{Driver: "sqlite", Connections: -1, Statements: map[string]string{"A": "commit", "B": ""}})
	for _, want := range []string{"DSN", "Connections", `"A"`, `"B"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s among all faults", err, want)
		}
	}
}
