package sqlwrite_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the tests look at the database by database/sql

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/sqlwrite"
	"github.com/holdfast-mq/holdfast/internal/mariatest"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
)

// maria is the server that all tests share, as that of pgtest is.
var maria *mariatest.Server

func TestMain(m *testing.M) {
	var err error
	if maria, err = mariatest.New(); err != nil {
		fmt.Fprintln(os.Stderr, "start MariaDB:", err)
		os.Exit(1)
	}
	code := pgtest.Main(m, pgtest.Options{NoSync: true})
	if err := maria.Close(); err != nil {
		fmt.Fprintln(os.Stderr, "end MariaDB:", err)
		code = 1
	}
	os.Exit(code)
}

// place is a database of the test's own, and how the test itself looks at it.
type place struct {
	driver string
	dsn    string
	db     *sql.DB
}

func newPlace(t testing.TB, driver, dsn, name, own string) *place {
	t.Helper()
	db, err := sql.Open(name, own)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return &place{driver, dsn, db}
}

func sqlitePlace(t testing.TB) *place {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a ?#%41 b.db") // a name that a URI would read otherwise
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return newPlace(t, "sqlite", path, "sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?_pragma=busy_timeout(5000)")
}

func postgresPlace(t testing.TB, s *pgtest.Server) *place {
	t.Helper()
	dsn := s.Database(t)
	return newPlace(t, "postgres", dsn, "pgx", dsn)
}

func mariaPlace(t testing.TB, s *mariatest.Server) *place {
	t.Helper()
	dsn := s.DSN(s.Database(t))
	return newPlace(t, "mysql", dsn, "mysql", dsn)
}

// everywhere runs a test on each database that can be had.
func everywhere(t *testing.T, test func(t testing.TB, p *place)) {
	t.Helper()
	for name, p := range map[string]func(t testing.TB) *place{
		"SQLite":     sqlitePlace,
		"PostgreSQL": func(t testing.TB) *place { t.Helper(); return postgresPlace(t, pgtest.Shared(t)) },
		"MariaDB":    func(t testing.TB) *place { t.Helper(); return mariaPlace(t, maria) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, p(t))
		})
	}
}

func (p *place) exec(t testing.TB, text string) {
	t.Helper()
	if _, err := p.db.ExecContext(t.Context(), text); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// one is the text of the only value that a query has.
func (p *place) one(t testing.TB, query string) string {
	t.Helper()
	var s sql.NullString
	if err := p.db.QueryRowContext(t.Context(), query).Scan(&s); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	if !s.Valid {
		return "NULL"
	}
	return s.String
}

// usual are the types of what the statements of most tests take.
func usual(driver string) map[string]string {
	types := map[string]string{"n": "integer", "least": "integer", "rate": "double", "ok": "boolean", "amount": "decimal(38,12)"}
	for _, name := range []string{"id", "order.plant", "plant", "more", "note", "raises", "a", "a.b.c"} {
		types[name] = "text"
	}
	if driver == "sqlite" {
		types["amount"] = "decimal(15,3)"
	}
	return types
}

// writer has the statements of a place.
func (p *place) writer(t testing.TB, statements map[string]string, more ...func(*sqlwrite.Config)) *sqlwrite.Writer {
	t.Helper()
	c := sqlwrite.Config{Driver: p.driver, DSN: p.dsn, Statements: statements, Types: usual(p.driver), Excerpt: 300}
	for _, f := range more {
		f(&c)
	}
	w, err := sqlwrite.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

func message(endpoint, payload string) holdfast.Message {
	return holdfast.Message{
		ID: holdfast.NewID(), Source: "shop-12", Destination: "mes", Endpoint: endpoint, Kind: holdfast.Signal, Payload: []byte(payload),
	}
}

// deliver must succeed.
func deliver(t testing.TB, w *sqlwrite.Writer, m holdfast.Message) holdfast.Receipt {
	t.Helper()
	r, err := w.Deliver(t.Context(), m)
	if err != nil {
		t.Fatalf("%s %.200s: %v", m.Endpoint, m.Payload, err)
	}
	if r.ID != m.ID || r.State != holdfast.Delivered {
		t.Fatalf("got %+v", r)
	}
	return r
}

// fails wants a failure with an outcome and a code, and a text that holds some
// words.
func fails(t testing.TB, err error, o holdfast.Outcome, code string, maybe bool, words ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("got no error, want %v %s", o, code)
		return
	}
	f := holdfast.AsFailure(err)
	if f.Outcome != o || f.Code != code || f.MaybeDelivered != maybe {
		t.Errorf("got %v %s (maybe delivered: %v): %v, want %v %s (%v)", f.Outcome, f.Code, f.MaybeDelivered, err, o, code, maybe)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("got %q, want %q in it", err, w)
		}
	}
}

// soon is a context that is over before anybody gets impatient.
func soon(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
