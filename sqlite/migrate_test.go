package sqlite_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/sqlite"
)

func tablesOf(t testing.TB, db *sql.DB) (list []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'hf\_%' ESCAPE '\'`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		list = append(list, name)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// age makes a file one of the first release.
func age(t testing.TB, path string) {
	t.Helper()
	first, err := os.ReadFile("schema/0001_first.sql")
	if err != nil {
		t.Fatal(err)
	}
	old := raw(t, path)
	for _, table := range tablesOf(t, old) {
		if !strings.Contains(string(first), "CREATE TABLE "+table+" ") {
			run(t, old, "DROP TABLE "+table)
		}
	}
	run(t, old, "UPDATE hf_meta SET value = 1 WHERE key IN ('schema', 'schema_again')")
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
}

// A file of the first release is brought up to date with all that is in it. SF-16.
func TestAFileOfTheFirstReleaseIsBroughtUpToDate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	db := open(t, path, sqlite.Options{})
	enqueue(t, db, message("waits"), message("delivered"))
	if _, err := db.Settle(t.Context(), settlement(claim(t, db, 2)[1], holdfast.Delivered)); err != nil {
		t.Fatal(err)
	}
	shut(t, db)
	age(t, path)
	from, to, err := sqlite.Migrate(t.Context(), path, sqlite.Options{})
	if err != nil || from != 1 || to < 2 {
		t.Fatalf("from %d to %d, %v", from, to, err)
	}
	db = open(t, path, sqlite.Options{})
	defer shut(t, db)
	for id, want := range map[holdfast.ID]string{"waits": "pending", "delivered": "delivered"} {
		if got := stateOf(t, db, id); got != want {
			t.Errorf("%s is %s, want %s", id, got, want)
		}
	}
	ingest(t, db, notification("n", "plant-1"))
	if err := nodestore.New(db, nil).Directory.PutList(t.Context(), notify.List{Name: "ops"}, ""); err != nil {
		t.Error(err)
	}
	audit(t, db)
}
