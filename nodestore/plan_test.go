package nodestore_test

import (
	"database/sql"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/postgres"
	"github.com/holdfast-mq/holdfast/sqlite"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m, pgtest.Options{NoSync: true})) }

// statements are the package's constants that are SQL, by name. Any other text that is SQL
// fails the test: a statement that is put together is not kept prepared.
func statements(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	all, known, verbs := map[string]string{}, map[string]string{}, regexp.MustCompile(`^\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\b`)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for i, value := range n.Values {
					text, ok := constant(value, known)
					if !ok {
						continue
					}
					if known[n.Names[i].Name] = text; verbs.MatchString(text) {
						all[n.Names[i].Name] = text
					}
				}
				return false
			case *ast.BasicLit:
				if verbs.MatchString(strings.Trim(n.Value, "`\"")) {
					t.Errorf("%s: SQL that is no constant: %s", name, n.Value)
				}
			}
			return true
		})
	}
	if len(all) < 15 {
		t.Fatalf("found %d statements: that cannot be all", len(all))
	}
	return all
}

// constant returns a text that is put together from literals and known constants.
func constant(e ast.Expr, known map[string]string) (text string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.Ident:
		text, ok = known[e.Name]
	case *ast.BinaryExpr:
		left, first := constant(e.X, known)
		right, second := constant(e.Y, known)
		return left + right, first && second
	}
	return text, ok
}

// Tokens and sites are looked for at each request: no statement reads a whole table.
func TestStatementsOfSQLiteFindRowsByAnIndex(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	db, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	handle, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(handle.Close(), db.Close()); err != nil {
			t.Error(err)
		}
	})
	plan := func(text string) (whole string) {
		t.Helper()
		found, err := handle.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+strings.NewReplacer("hf_now()", "0", " FOR UPDATE", "").Replace(text), make([]any, 10)...)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		defer found.Close()
		for found.Next() {
			var step string
			if err := found.Scan(new(any), new(any), new(any), &step); err != nil {
				t.Fatal(err)
			}
			whole += step + "\n"
		}
		if err := found.Err(); err != nil {
			t.Fatal(err)
		}
		return whole
	}
	bad := regexp.MustCompile(`(?m)^SCAN hf_|TEMP B-TREE`)
	for name, text := range statements(t) {
		if strings.HasPrefix(name, "lockAdmin") {
			continue // asked when an administrator is taken away, and never at a request
		}
		if p := plan(text); bad.MatchString(p) {
			t.Errorf("%s: %s", name, p)
		}
	}
	if p := plan(`SELECT name FROM hf_token WHERE role = $1`); !bad.MatchString(p) {
		t.Errorf("the test does not see that a whole table is read: %s", p)
	}
}

// The same in PostgreSQL, which reads a whole table here only where it has no other way.
func TestStatementsOfPostgreSQLFindRowsByAnIndex(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Shared(t).Database(t)
	if _, _, err := postgres.Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	c, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	if _, err := c.Exec(t.Context(), "SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan"); err != nil {
		t.Fatal(err)
	}
	plan := func(name, text string) string {
		t.Helper()
		d, err := c.Prepare(t.Context(), name, text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		execute := "EXPLAIN EXECUTE " + name
		if n := len(d.ParamOIDs); n > 0 {
			execute += "(NULL" + strings.Repeat(", NULL", n-1) + ")"
		}
		found, err := c.Query(t.Context(), execute, pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		lines, err := pgx.CollectRows(found, pgx.RowTo[string])
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return strings.Join(lines, "\n")
	}
	for name, text := range statements(t) {
		if p := plan(strings.ToLower(name), text); strings.Contains(p, "Seq Scan on hf_") {
			t.Errorf("%s: %s", name, p)
		}
	}
	if p := plan("whole", `SELECT name FROM hf_token WHERE role = $1`); !strings.Contains(p, "Seq Scan on hf_") {
		t.Errorf("the test does not see that a whole table is read: %s", p)
	}
}
