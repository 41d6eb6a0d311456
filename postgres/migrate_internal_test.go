package postgres

import (
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast/internal/pgtest"
)

// While one node makes the tables, another finds all of them or none: never
// some that would be somebody else's.
func TestTablesInTheMakingAreNotForeign(t *testing.T) {
	t.Parallel()
	const schemas = 100
	dsn := pgtest.Shared(t).Database(t)
	connect := func() *pgx.Conn {
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(t.Context()) })
		return conn
	}
	maker := connect()
	do := func(conn *pgx.Conn, format string, args ...any) {
		if _, err := conn.Exec(t.Context(), fmt.Sprintf(format, args...), pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Error(err)
		}
	}
	for n := range schemas {
		do(maker, `CREATE SCHEMA hf_%d`, n)
	}
	var all sync.WaitGroup
	for range 4 {
		conn := connect()
		all.Go(func() {
			for n := range schemas {
				do(conn, `SET search_path TO hf_%d`, n)
				for found := false; !found && !t.Failed(); {
					have, err := findTables(t.Context(), conn)
					if err != nil {
						t.Errorf("schema %d: %v", n, err)
					}
					found = have.version == 1
				}
			}
		})
	}
	for n := range schemas {
		do(maker, `BEGIN; SET LOCAL search_path TO hf_%d; CREATE TABLE hf_clock (at bigint);
			CREATE TABLE hf_meta (key text, value text); INSERT INTO hf_meta VALUES ('schema', '1'); COMMIT`, n)
	}
	all.Wait()
}
