package postgres_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/postgres"
	"github.com/holdfast-mq/holdfast/storetest"
)

// The suite's server does not sync, which no kill of a process can tell.
func TestMain(m *testing.M) {
	switch name := os.Getenv(childEnv); name {
	case "":
		os.Exit(pgtest.Main(m, pgtest.Options{NoSync: true}))
	case "quiet":
		node(name, 0, os.Args[1:])
	case "follow":
		follow(os.Args[1:])
	default:
		node(name, 3, os.Args[1:])
	}
}

// database makes a database with the store's tables, in which a test can let
// time go by.
func database(t testing.TB) string {
	t.Helper()
	dsn := pgtest.Shared(t).Template(t, "holdfast", prepare).Database(t)
	keepConsole(t, dsn)
	return dsn
}

func prepare(dsn string) error {
	ctx := context.Background()
	if _, _, err := postgres.Migrate(ctx, dsn); err != nil {
		return err
	}
	return sql(ctx, dsn, `CREATE TABLE test_clock (ahead bigint NOT NULL)`, `INSERT INTO test_clock VALUES (0)`,
		`CREATE OR REPLACE FUNCTION hf_raw() RETURNS bigint LANGUAGE sql VOLATILE AS
			'SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + (SELECT ahead FROM test_clock)'`)
}

func sql(ctx context.Context, dsn string, statements ...string) error {
	return onConsole(ctx, dsn, func(c *pgx.Conn) error {
		for _, s := range statements {
			if _, err := c.Exec(ctx, s); err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
		}
		return nil
	})
}

func number(t testing.TB, dsn, query string) (n int) {
	t.Helper()
	err := onConsole(t.Context(), dsn, func(c *pgx.Conn) error { return c.QueryRow(t.Context(), query).Scan(&n) })
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// pass lets time go by on the database's clock, as some node has seen.
func pass(t testing.TB, dsn string, d time.Duration) {
	t.Helper()
	if err := sql(t.Context(), dsn, fmt.Sprintf("WITH c AS (UPDATE hf_clock SET at = at + %[1]d, raw = raw + %[1]d) UPDATE test_clock SET ahead = ahead + %[1]d", d.Microseconds())); err != nil {
		t.Fatal(err)
	}
}

// step sets the database's clock. No time passes.
func step(t testing.TB, dsn string, d time.Duration) {
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

// opened is a store that is closed at the test's end.
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

// store is a store and where it stands.
type store struct {
	*postgres.DB
	dsn string
}

var maker = storetest.Maker{
	Open: func(t testing.TB, log *slog.Logger) storetest.Full {
		t.Helper()
		dsn := database(t)
		return &store{open(t, dsn, postgres.Options{Source: storetest.Source, Logger: log}), dsn}
	},
	Reopen: func(t testing.TB, s storetest.Full) storetest.Full {
		f := s.(*store)
		shut(t, f.DB)
		return &store{open(t, f.dsn, postgres.Options{Source: storetest.Source}), f.dsn}
	},
	Beside: func(t testing.TB, s storetest.Full) storetest.Full {
		t.Helper()
		o := quick("beside")
		o.Source = storetest.Source
		dsn := s.(*store).dsn
		return &store{open(t, dsn, o), dsn}
	},
	Alone: func(t testing.TB) {
		t.Helper()
		racetest.Without(t, "one goroutine calls the store; the cases in which several meet are raced")
	},
	Pass: func(t testing.TB, s storetest.Full, d time.Duration) {
		t.Helper()
		if err := s.(*store).TickClock(t.Context()); err != nil { // else the node has seen some of it already, and the store less than it
			t.Fatal(err)
		}
		pass(t, s.(*store).dsn, d)
	},
	Step: func(t testing.TB, s storetest.Full, d time.Duration) { t.Helper(); step(t, s.(*store).dsn, d) },
	Clock: func(t testing.TB, s storetest.Full) time.Time {
		t.Helper()
		return time.UnixMicro(int64(number(t, s.(*store).dsn, "SELECT hf_raw()")))
	},
	Now: func(t testing.TB, s storetest.Full) time.Time {
		t.Helper()
		return time.UnixMicro(int64(number(t, s.(*store).dsn, "SELECT hf_now()")))
	},
	Check: func(t testing.TB, s storetest.Full) {
		t.Helper()
		faults, err := s.(*store).Audit(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range faults {
			t.Error(f)
		}
	},
}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, maker, storetest.Transaction[*postgres.Tx]{
		Of: func(s storetest.Full) holdfast.InboxStore[*postgres.Tx] { return s.(*store).DB },
		Enqueue: func(ctx context.Context, tx *postgres.Tx, m holdfast.Message) error {
			_, err := tx.Enqueue(ctx, m)
			return err
		},
	})
}
