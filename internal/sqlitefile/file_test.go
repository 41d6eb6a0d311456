package sqlitefile_test

import (
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/internal/sqlitefile"
)

// made writes a database with a table t of n rows and an index on its text, and
// leaves the newest half of it in the log.
func made(t testing.TB, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.db")
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(wal)&_pragma=wal_autocheckpoint(0)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	run := func(text string, args ...any) {
		if _, err := db.ExecContext(t.Context(), text, args...); err != nil {
			t.Fatal(err)
		}
	}
	run("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b BLOB, c REAL, d INTEGER)")
	run("CREATE INDEX i ON t (a)")
	for i := range n {
		run("INSERT INTO t VALUES (?, ?, ?, ?, ?)", i+1, text(i), blob(i), float64(i)/2, i*i*i-5000)
		if i == n/2 {
			run("PRAGMA wal_checkpoint(TRUNCATE)")
		}
	}
	to := filepath.Join(t.TempDir(), "y.db")
	for _, side := range []string{"", "-wal"} {
		b, err := os.ReadFile(path + side)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to+side, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

func text(i int) string { return fmt.Sprint("row ", i, strings.Repeat("x", i%50)) }
func blob(i int) []byte { return make([]byte, i*i%20000) }

func right(r *sqlitefile.Row) bool {
	i := int(r.ID) - 1
	c, _ := r.Values[3].(float64)
	return len(r.Values) == 5 && r.Text(1) == text(i) && len(r.Bytes(2)) == len(blob(i)) && c == float64(i)/2 && r.Int(4) == int64(i*i*i-5000)
}

// Every row of a sound file is read as SQLite wrote it: by the tree, by its id,
// by the index, and, where no tree is known, from the pages.
func TestReadsWhatSQLiteWrote(t *testing.T) {
	t.Parallel()
	const n = 800
	f, err := sqlitefile.Open(made(t, n))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	found := 0
	f.Orphans(func(table bool, r sqlitefile.Row) {
		if table && len(r.Values) == 5 && r.Null(0) && right(&r) {
			found++
		}
	})
	if found < n { // and copies that rebalancing has left
		t.Errorf("%d rows from the pages, want %d", found, n)
	}
	roots := f.Roots()
	next := int64(1)
	if whole := f.Table(roots["t"], func(r sqlitefile.Row) {
		if r.ID != next || !right(&r) {
			t.Errorf("row %d is %v", next, r.ID)
		}
		next++
	}); !whole || next != n+1 {
		t.Errorf("whole %v, up to %d", whole, next)
	}
	entries := map[int64]string{}
	if whole := f.Index(roots["i"], func(r sqlitefile.Row) { entries[r.Int(1)] = r.Text(0) }); !whole || len(entries) != n {
		t.Errorf("whole %v, %d entries", whole, len(entries))
	}
	for id, a := range entries {
		if r, ok := f.Find(roots["t"], id); !ok || !right(&r) || r.Text(1) != a {
			t.Errorf("row %d is not found by its id", id)
		}
	}
	if _, ok := f.Find(roots["t"], n+1); ok {
		t.Error("a row is found that is not there")
	}
	if last := f.Last(roots["t"]); last != n {
		t.Errorf("the last is %d", last)
	}
	if pages, rows := f.Damage(); pages+rows != 0 {
		t.Errorf("a sound file has %d damaged pages and %d rows", pages, rows)
	}
}

// A commit whose checksum is wrong is found, and those after it; one alone may
// be what a power cut has left.
func TestLogThatLostCommits(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "one goroutine reads files")
	path := made(t, 40) + "-wal"
	sound, err := sqlitefile.ReadLog(path)
	if err != nil || sound.Damaged() || sound.Commits != 19 || sound.Unseen != 0 || sound.Pages == 0 {
		t.Fatalf("a sound log is %+v, %v", sound, err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(content); at += 97 {
		was := content[at]
		content[at] ^= 1 << (at % 8)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		content[at] = was
		l, err := sqlitefile.ReadLog(path)
		if err != nil || l.Commits < 1 || l.Damaged() != (l.Unseen > 1 || !l.Header) {
			t.Fatalf("byte %d: %+v, %v", at, l, err)
		}
		if seen := l.Commits - l.Unseen; !l.Damaged() && seen < sound.Commits-1 {
			t.Errorf("byte %d: %d commits are seen, and that is no damage", at, seen)
		}
	}
	if err := os.WriteFile(path, content[:len(content)-100], 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := sqlitefile.ReadLog(path); err != nil || l.Damaged() {
		t.Errorf("a commit that was cut short is %+v, %v", l, err)
	}
}

// Whatever the bytes are, there is an end, and no panic.
func TestAnyBytes(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "one goroutine reads files")
	path := made(t, 200)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(7, 7))
	for range 100 {
		b := append([]byte{}, content...)
		for range 1 + rnd.IntN(2000) {
			b[rnd.IntN(len(b))] = byte(rnd.Uint32())
		}
		if err := os.WriteFile(path, b[:rnd.IntN(len(b))], 0o600); err != nil {
			t.Fatal(err)
		}
		readAll(t, path)
	}
}

func readAll(t testing.TB, path string) {
	t.Helper()
	f, err := sqlitefile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, root := range f.Roots() {
		f.Table(root, func(sqlitefile.Row) {})
		f.Index(root, func(sqlitefile.Row) {})
		f.Find(root, 7)
		f.Last(root)
	}
	f.Orphans(func(bool, sqlitefile.Row) {})
}

func FuzzAnyBytes(f *testing.F) {
	path := made(f, 2)
	for _, side := range []string{"", "-wal"} {
		b, err := os.ReadFile(path + side)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, side == "")
	}
	f.Fuzz(func(t *testing.T, b []byte, database bool) {
		name := filepath.Join(t.TempDir(), "x.db")
		at := name
		if !database {
			at += "-wal"
		}
		if err := os.WriteFile(at, b, 0o600); err != nil {
			t.Fatal(err)
		}
		readAll(t, name)
	})
}

// A machine that loses its power twice, the second time right after a start, may
// leave two transactions that were not on disk yet, the end of the first behind
// the second. Nothing that was safe is lost, and the file is not damaged.
func TestTwoTornTransactions(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	log := path + "-wal"
	// write leaves the log as a process that died would, its last transaction torn.
	write := func(text string, args ...any) {
		t.Helper()
		db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(wal)&_pragma=wal_autocheckpoint(0)")
		if err != nil {
			t.Fatal(err)
		}
		db.SetMaxOpenConns(1)
		before := int64(0)
		for i, text := range []string{"CREATE TABLE IF NOT EXISTS t (a BLOB)", text} {
			if _, err := db.ExecContext(t.Context(), text, args[:i*len(args)]...); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				before = safe(t, log)
			}
		}
		b, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil { // merges and removes the log
			t.Fatal(err)
		}
		b[before+24+100] ^= 1
		for name, content := range map[string][]byte{log: b, path: file} {
			if err := os.WriteFile(name, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	write("INSERT INTO t VALUES (?)", make([]byte, 50_000))
	if l, err := sqlitefile.ReadLog(log); err != nil || l.Unseen != 1 || l.Damaged() {
		t.Fatalf("once: %+v, %v", l, err)
	}
	write("INSERT INTO t VALUES (?)", make([]byte, 5_000))
	if l, err := sqlitefile.ReadLog(log); err != nil || l.Unseen != 2 || l.Damaged() {
		t.Errorf("twice: %+v, %v; want two that are not seen, and no damage", l, err)
	}
}

// safe is where the next frame goes in a log that is sound up to there.
func safe(t testing.TB, log string) int64 {
	t.Helper()
	b, err := os.ReadFile(log)
	if err != nil || len(b) == 0 {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	at, commits := int64(32), 0
	for frame := at; frame+24+sqlitefile.PageSize <= int64(len(b)); frame += 24 + sqlitefile.PageSize {
		torn := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(torn, b[:frame+24+sqlitefile.PageSize], 0o600); err != nil {
			t.Fatal(err)
		}
		if l, err := sqlitefile.ReadLog(torn); err != nil || l.Unseen > 0 {
			break
		} else if l.Commits > commits {
			commits, at = l.Commits, frame+24+sqlitefile.PageSize
		}
	}
	return at
}

// A page that the disk does not give is counted, whoever asks for it, and why is kept.
func TestAPageThatTheDiskDoesNotGive(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(f *sqlitefile.File){
		"a walk":       func(f *sqlitefile.File) { f.Table(2, func(sqlitefile.Row) {}) },
		"one row":      func(f *sqlitefile.File) { f.Find(2, 1) },
		"the last":     func(f *sqlitefile.File) { f.Last(2) },
		"what is left": func(f *sqlitefile.File) { f.Orphans(func(bool, sqlitefile.Row) {}) },
	} {
		f, err := sqlitefile.Open(made(t, 10))
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Fault(); err != nil {
			t.Errorf("%s: %v before anything was read", name, err)
		}
		if err := f.Close(); err != nil { // from here on every read fails
			t.Fatal(err)
		}
		ask(f)
		if pages, _ := f.Damage(); pages == 0 || !errors.Is(f.Fault(), os.ErrClosed) {
			t.Errorf("%s: %d pages, %v", name, pages, f.Fault())
		}
	}
}
