package postgres_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/postgres"
)

// The suite's server does not sync, which no kill of a process can tell.
func TestMain(m *testing.M) {
	switch name := os.Getenv(childEnv); name {
	case "":
		os.Exit(pgtest.Main(m, pgtest.Options{NoSync: true}))
	case "quiet":
		node(name, 0, os.Args[1:])
	default:
		node(name, 3, os.Args[1:])
	}
}

// database makes a database with the store's tables, in which a test can let
// time go by.
func database(t testing.TB) string {
	t.Helper()
	return pgtest.Shared(t).Template(t, "holdfast", prepare).Database(t)
}

func prepare(dsn string) error {
	ctx := context.Background()
	if _, _, err := postgres.Migrate(ctx, dsn); err != nil {
		return err
	}
	return sql(ctx, dsn, `CREATE TABLE test_clock (ahead bigint NOT NULL)`, `INSERT INTO test_clock VALUES (0)`,
		`CREATE OR REPLACE FUNCTION hf_now() RETURNS bigint LANGUAGE sql VOLATILE AS
			'SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + (SELECT ahead FROM test_clock)'`)
}

func sql(ctx context.Context, dsn string, statements ...string) error {
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer c.Close(ctx) //nolint:errcheck // it has done its work
	for _, s := range statements {
		if _, err := c.Exec(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// pass lets time go by on the database's clock.
func pass(t testing.TB, dsn string, d time.Duration) {
	t.Helper()
	if err := sql(t.Context(), dsn, fmt.Sprintf("UPDATE test_clock SET ahead = ahead + %d", d.Microseconds())); err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, dsn string, o postgres.Options) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(t.Context(), dsn, o.Relaxed())
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// fresh is a store in a database of the test's own, closed at its end.
func fresh(t testing.TB, o postgres.Options) *postgres.DB {
	t.Helper()
	return opened(t, database(t), o)
}

func opened(t testing.TB, dsn string, o postgres.Options) *postgres.DB {
	t.Helper()
	db := open(t, dsn, o)
	t.Cleanup(func() { shut(t, db) })
	return db
}

func shut(t testing.TB, db *postgres.DB) {
	t.Helper()
	if err := db.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}
