package postgres_test

import (
	"testing"

	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/postgres"
)

func incarnation(t *testing.T, dsn string) string {
	t.Helper()
	db := open(t, dsn, postgres.Options{})
	defer shut(t, db)
	return incarnationOf(t, db)
}

func incarnationOf(t *testing.T, db *postgres.DB) string {
	t.Helper()
	id, err := nodestore.New(db, nil).Sites.Incarnation(t.Context())
	if err != nil || id == "" {
		t.Fatalf("Incarnation = %q, %v", id, err)
	}
	return id
}

// NO-20, design 10: whichever way a dump comes back, sites hear that central may
// have lost something.
func TestARestoredDumpIsAnotherIncarnation(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	do := func(program string, args ...string) {
		t.Helper()
		if err := server.Tool(program, args...); err != nil {
			t.Fatal(err)
		}
	}
	for name, restore := range map[string]func(dsn, dump string) (restored string){
		"clean, into the same database": func(dsn, dump string) string {
			do("pg_restore", "--clean", "--if-exists", "--exit-on-error", "--dbname="+dsn, dump)
			return dsn
		},
		"into the same database without the schema": func(dsn, dump string) string {
			if err := sql(t.Context(), dsn, `DROP SCHEMA public CASCADE`, `CREATE SCHEMA public`); err != nil {
				t.Fatal(err)
			}
			do("pg_restore", "--file="+dump+".sql", dump)
			do("psql", "--no-psqlrc", "--set=ON_ERROR_STOP=1", "--quiet", "--file="+dump+".sql", dsn)
			return dsn
		},
		"into another database": func(_, dump string) string {
			other := server.Database(t)
			do("pg_restore", "--exit-on-error", "--dbname="+other, dump)
			return other
		},
		"rows only, and said so by hand": func(dsn, _ string) string {
			if err := sql(t.Context(), dsn, `UPDATE hf_meta SET value = 'restored-' || clock_timestamp() WHERE key = 'incarnation'`); err != nil {
				t.Fatal(err)
			}
			return dsn
		},
	} {
		t.Run(name, func(t *testing.T) {
			dsn := database(t)
			before := incarnation(t, dsn)
			dump := nameOf(t, dsn) + ".dump"
			do("pg_dump", "--format=custom", "--file="+dump, "--dbname="+dsn)
			if got := incarnation(t, restore(dsn, dump)); got == before {
				t.Errorf("got %s as before", got)
			}
		})
	}
}

// What happens to a database every day costs no replay.
func TestTheIncarnationOutlivesUpkeep(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{NoSync: true})
	dsn := server.Database(t)
	before := incarnation(t, dsn)
	for what, do := range map[string]func() error{
		"VACUUM FULL": func() error { return sql(t.Context(), dsn, `VACUUM FULL`, `VACUUM FREEZE`) },
		"REINDEX": func() error {
			return sql(t.Context(), dsn, `REINDEX TABLE hf_meta`, `CLUSTER hf_meta USING hf_meta_pkey`)
		},
		"a migration": func() error {
			_, _, err := postgres.Migrate(t.Context(), dsn)
			return err
		},
		"a dump":    func() error { return server.Tool("pg_dump", "--file=plain.sql", "--dbname="+dsn) },
		"a restart": func() error { return server.Restart(pgtest.Fast) },
		"a crash":   func() error { return server.Restart(pgtest.Immediate) },
		"a rename": func() error {
			return sql(t.Context(), dsn, `ALTER TABLE hf_meta RENAME TO x`, `ALTER TABLE x RENAME TO hf_meta`)
		},
		"another segment": func() error { return sql(t.Context(), dsn, `SELECT pg_switch_wal()`) },
	} {
		if err := do(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got := incarnation(t, dsn); got != before {
			t.Errorf("after %s: got %s, want %s", what, got, before)
		}
	}
}
