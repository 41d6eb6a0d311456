package sqlitefile_test

import (
	"bytes"
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/internal/sqlitefile"
)

// worn writes a database whose table t has lost, changed and gained rows, so
// that its pages have free blocks, fragments and cells of rows that are gone. It
// returns its bytes, the ids of its rows, and the pages of the table by kind.
func worn(t *testing.T) (content []byte, ids map[int64]bool, pages map[uint32]string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.db")
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	run := func(text string, args ...any) {
		if _, err := db.ExecContext(context.WithoutCancel(t.Context()), text, args...); err != nil {
			t.Fatal(err)
		}
	}
	run("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT)")
	ids = map[int64]bool{}
	for i := int64(1); i <= 500; i++ {
		run("INSERT INTO t VALUES (?, ?)", i, text(int(i)))
		ids[i] = true
	}
	for i := int64(3); i <= 500; i += 7 {
		run("DELETE FROM t WHERE id = ?", i)
		delete(ids, i)
	}
	for i := int64(5); i <= 500; i += 5 { // shorter: the rest becomes a fragment
		run("UPDATE t SET a = substr(a, 3) WHERE id = ?", i)
	}
	for i := int64(3); i <= 500; i += 21 {
		run("INSERT INTO t VALUES (?, ?)", i, "again")
		ids[i] = true
	}
	pages = map[uint32]string{}
	rows, err := db.QueryContext(t.Context(), "SELECT pageno, pagetype FROM dbstat WHERE name = 't'")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var n uint32
		var kind string
		if err := rows.Scan(&n, &kind); err != nil {
			t.Fatal(err)
		}
		pages[n] = kind
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if content, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return content, ids, pages
}

// One damaged byte in what a page says of itself, its kind, its number of cells
// or its fragments, costs no row; one in its list of cells costs one row.
//
// Edge cases 20 and 21; OI-12, damaged file.
func TestDamagedAccountOfAPage(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "one goroutine reads files")
	content, ids, pages := worn(t)
	const free, fragments = 1, 7
	seen := map[string]bool{}
	for n, kind := range pages {
		page := content[int(n-1)*sqlitefile.PageSize:]
		seen[kind] = true
		seen["with free blocks"] = seen["with free blocks"] || page[free] != 0
		seen["with fragments"] = seen["with fragments"] || page[fragments] != 0
	}
	for _, what := range []string{"leaf", "internal", "with free blocks", "with fragments"} {
		if !seen[what] {
			t.Fatalf("no page %s: nothing is tested", what)
		}
	}
	path := filepath.Join(t.TempDir(), "y.db")
	missing := func(at int, mask byte) int {
		damaged := bytes.Clone(content)
		damaged[at] ^= mask
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := sqlitefile.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		found := map[int64]bool{}
		note := func(r sqlitefile.Row) {
			if len(r.Values) == 2 && ids[r.ID] && r.Text(1) != "" {
				found[r.ID] = true
			}
		}
		if !f.Table(f.Roots()["t"], note) {
			f.Orphans(func(table bool, r sqlitefile.Row) {
				if table {
					note(r)
				}
			})
		}
		return len(ids) - len(found)
	}
	for n, kind := range pages {
		for offset := range 60 {
			most := 0
			switch {
			case offset == 1 || offset == 2 || offset == 5 || offset == 6:
				continue // where the free blocks and the cells begin: only SQLite goes by them
			case offset >= 8 && kind == "internal":
				continue // pointers to pages: their rows are looked for among the orphans
			case offset >= 8:
				most = 1
			}
			masks := []byte{1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 64, 128, 255} // 7, 8 and 15 make kinds of pages of each other
			if offset >= 8 {
				masks = []byte{1, 37, 255}
			}
			for _, mask := range masks {
				if lost := missing(int(n-1)*sqlitefile.PageSize+offset, mask); lost > most {
					t.Errorf("%s page %d, byte %d ^ %#02x: %d rows lost", kind, n, offset, mask, lost)
				}
			}
			if t.Failed() {
				return
			}
		}
	}
	if lost := missing(0, 0); lost != 0 {
		t.Errorf("of a sound file %d rows are lost", lost)
	}
}
