package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/sqlite"
	"github.com/holdfast-mq/holdfast/storetest"
)

// raw opens the file beside the store, as another program would.
func raw(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func run(t testing.TB, db *sql.DB, text string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), text); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// A process that dies, or a power cut, while the file is made leaves a
// rollback journal: the next start undoes what was begun.
//
// Edge cases 5, 18, 20.
func TestOpenUndoesWhatAnInterruptedCreationLeft(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	other := raw(t, path)
	other.SetMaxOpenConns(1)
	for _, text := range []string{
		"CREATE TABLE t (b)", "INSERT INTO t VALUES (1)",
		"PRAGMA cache_size = 1", "BEGIN IMMEDIATE", // so small that pages are written before the commit
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100) INSERT INTO t SELECT zeroblob(4000) FROM n",
	} {
		run(t, other, text)
	}
	crashed := filepath.Join(t.TempDir(), "holdfast.db")
	for _, suffix := range []string{"", "-journal"} {
		if err := os.WriteFile(crashed+suffix, contents(t, path+suffix)[0], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(contents(t, crashed)[0]); n < 100<<10 {
		t.Fatalf("nothing of the transaction is in the file: %d bytes", n)
	}
	db := open(t, crashed, sqlite.Options{})
	defer shut(t, db)
	got, err := db.SQL(t.Context(), "SELECT count(*) FROM t")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([][]any{{int64(1)}}, got); d != "" {
		t.Errorf("rows after the start (-want +got):\n%s", d)
	}
	enqueue(t, db, message("m"))
	audit(t, db)
}

// OI-13: what makes a commit durable is set, read back, and sticks.
func TestPragmasAreSet(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options sqlite.Options
		level   int64
	}{"full": {sqlite.Options{}, 2}, "normal": {sqlite.Options{Normal: true}, 1}} {
		db := fresh(t, c.options)
		defer shut(t, db)
		got := map[string]any{}
		for _, pragma := range []string{"journal_mode", "synchronous", "wal_autocheckpoint", "journal_size_limit", "cache_size", "temp_store", "busy_timeout", "locking_mode"} {
			rows, err := db.SQL(t.Context(), "PRAGMA "+pragma)
			if err != nil {
				t.Fatal(err)
			}
			got[pragma] = rows[0][0]
		}
		if d := cmp.Diff(got, map[string]any{
			"journal_mode": "wal", "synchronous": c.level, "wal_autocheckpoint": int64(4000), "journal_size_limit": int64(64 << 20),
			"cache_size": int64(-8000), "temp_store": int64(2), "busy_timeout": int64(5000), "locking_mode": "normal",
		}); d != "" {
			t.Errorf("%s (-got +want):\n%s", name, d)
		}
		if full := db.Durability() == "local"; full == c.options.Normal {
			t.Errorf("%s: durability is %q", name, db.Durability())
		}
	}
}

func TestRefusesWhatIsNotDurable(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]map[string]string{
		"synchronous does not stick":  {"PRAGMA synchronous": "1"},
		"the journal mode is another": {"PRAGMA journal_mode": "delete"},
		"an SQLite that loses writes": {"SELECT sqlite_version()": "3.51.2"},
		"an old SQLite":               {"SELECT sqlite_version()": "3.9.99"},
	} {
		path := filepath.Join(t.TempDir(), "holdfast.db")
		p := &tap{answer: answer}
		if _, err := sqlite.Open(t.Context(), path, sqlite.Options{}.With(p.wrap)); !errors.Is(err, sqlite.ErrNotDurable) {
			t.Errorf("%s: got %v, want ErrNotDurable", name, err)
		}
		shut(t, open(t, path, sqlite.Options{})) // nothing is left behind
	}
}

// Edge case 65.
func TestSQLiteIsNewEnough(t *testing.T) {
	t.Parallel()
	for version, ok := range map[string]bool{"3.51.3": true, "3.52": true, "4.0.0": true, "3.51.10": true, "3.51": false, "3.51.2": false, "3.7.0": false} {
		p := &tap{answer: map[string]string{"SELECT sqlite_version()": version}}
		db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "x.db"), sqlite.Options{}.With(p.wrap))
		if (err == nil) != ok {
			t.Errorf("SQLite %s: %v", version, err)
		}
		if err == nil {
			shut(t, db)
		}
	}
}

// Case 24: a file of a newer release is refused politely and left intact, with
// the log of a process that died.
func TestNewerSchemaIsLeftAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "holdfast.db")
	db := open(t, path, sqlite.Options{})
	shut(t, db)
	other := raw(t, path)
	other.SetMaxOpenConns(1)
	run(t, other, "PRAGMA wal_autocheckpoint = 0")
	run(t, other, "UPDATE hf_meta SET value = 9999 WHERE key IN ('schema', 'schema_again')")
	crashed := filepath.Join(t.TempDir(), "crashed.db")
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(path + suffix)
		if err != nil || len(b) == 0 {
			t.Fatalf("%d bytes, %v", len(b), err)
		}
		if err := os.WriteFile(crashed+suffix, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := contents(t, crashed, crashed+"-wal")
	for range 2 {
		_, err := sqlite.Open(t.Context(), crashed, sqlite.Options{})
		if !errors.Is(err, sqlite.ErrNewer) || !strings.Contains(err.Error(), "9999") {
			t.Errorf("got %v, want ErrNewer with the number", err)
		}
		if !slices.EqualFunc(contents(t, crashed, crashed+"-wal"), before, bytes.Equal) {
			t.Error("the file was changed")
		}
	}
}

func contents(t testing.TB, paths ...string) [][]byte {
	t.Helper()
	list := make([][]byte, len(paths))
	for i, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		list[i] = b
	}
	return list
}

// SF-16: opening again changes nothing that is there.
//
// Outbox case 10; SF-16.
func TestOpenAgainKeepsTheSchema(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	var schema [2]string
	for i := range schema {
		db := open(t, path, sqlite.Options{})
		rows, err := db.SQL(t.Context(), "SELECT group_concat(sql, ';') FROM (SELECT sql FROM sqlite_master ORDER BY name)")
		if err != nil {
			t.Fatal(err)
		}
		schema[i] = rows[0][0].(string)
		shut(t, db)
	}
	if schema[0] != schema[1] || !strings.Contains(schema[0], "hf_message") {
		t.Errorf("got %s, then %s", schema[0], schema[1])
	}
}

func TestNotADatabase(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	content := bytes.Repeat([]byte("this is no database "), 1000)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Open(t.Context(), path, sqlite.Options{}); !errors.Is(err, sqlite.ErrDamaged) {
		t.Errorf("got %v, want ErrDamaged", err)
	}
	if !bytes.Equal(contents(t, path)[0], content) {
		t.Error("the file was changed")
	}
}

// Characters that mean something in a file URI mean nothing in a path.
func TestForeignPaths(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"what?.db", "100%.db", "a%20b.db", "issue #1.db", "a&b=c.db", "two words.db", "grüße.db", "+plus;semi.db", "sub/folder/x.db"} {
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		db := open(t, path, sqlite.Options{})
		id := holdfast.ID("m")
		if _, err := db.Enqueue(t.Context(), holdfast.Message{ID: id, Destination: "a", Endpoint: "E"}); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Get(t.Context(), id); err != nil {
			t.Errorf("%s: the readers open another file: %v", name, err)
		}
		shut(t, db)
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
		entries, err := os.ReadDir(filepath.Dir(path))
		if err != nil || len(entries) != 3 {
			t.Errorf("%s: files %v, %v; want the database, its lock and its reserve", name, entries, err)
		}
	}
}

func TestLinkToTheFileIsTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	link := filepath.Join(t.TempDir(), "link.db")
	db := open(t, path, sqlite.Options{})
	defer shut(t, db)
	if err := os.Symlink(path, link); err != nil {
		if runtime.GOOS == "windows" { // not everybody may
			t.Skip(err)
		}
		t.Fatal(err)
	}
	if _, err := sqlite.Open(t.Context(), link, sqlite.Options{}); !errors.Is(err, sqlite.ErrOwned) {
		t.Errorf("got %v, want ErrOwned", err)
	}
}

// A child owns the file; whoever comes second is told who it is.
func TestSecondOwnerIsToldWhoIsFirst(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	child, out := start(t, "own", path)
	if line := out.line(t); line != "ready" {
		t.Fatalf("child says %q", line)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	_, err = sqlite.Open(t.Context(), path, sqlite.Options{})
	if !errors.Is(err, sqlite.ErrOwned) {
		t.Fatalf("got %v, want ErrOwned", err)
	}
	for _, want := range []string{fmt.Sprint("process ", child.Process.Pid), host} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not name %q", err, want)
		}
	}
	kill(t, child)
	shut(t, open(t, path, sqlite.Options{})) // the lock went with its holder
}

// A lock that did not hold (a file system without locks, a removed lock file)
// is noticed by the epoch: the former owner stops and acknowledges nothing.
func TestLostOwnershipStopsTheStore(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(db *sqlite.DB, c holdfast.Claim) error{
		"enqueue": func(db *sqlite.DB, _ holdfast.Claim) error {
			_, err := db.Enqueue(context.Background(), holdfast.Message{ID: "late", Destination: "a", Endpoint: "E"})
			return err
		},
		"settle": func(db *sqlite.DB, c holdfast.Claim) error {
			_, err := db.Settle(context.Background(), holdfast.Settlement{Seq: c.Seq, Token: c.Token, State: holdfast.Delivered})
			return err
		},
		"do": func(db *sqlite.DB, _ holdfast.Claim) error {
			return db.Do(context.Background(), func(ctx context.Context, tx *sqlite.Tx) error {
				_, err := tx.Enqueue(ctx, holdfast.Message{ID: "late", Destination: "a", Endpoint: "E"})
				return err
			})
		},
	} {
		path := filepath.Join(t.TempDir(), "holdfast.db")
		db := open(t, path, sqlite.Options{})
		for _, id := range []holdfast.ID{"m", "n"} {
			if _, err := db.Enqueue(t.Context(), holdfast.Message{ID: id, Destination: "a", Endpoint: "E"}); err != nil {
				t.Fatal(err)
			}
		}
		b, err := db.Claim(t.Context(), map[string]int{"a": 1})
		if err != nil || len(b.Claims) != 1 {
			t.Fatalf("%d claims, %v", len(b.Claims), err)
		}
		run(t, raw(t, path), "UPDATE hf_meta SET value = value + 1 WHERE key = 'epoch'")
		if err := act(db, b.Claims[0]); !errors.Is(err, holdfast.ErrClosed) {
			t.Errorf("%s: got %v, want ErrClosed", name, err)
		}
		select {
		case <-db.Failed():
		default:
			t.Errorf("%s: the store did not stop", name)
		}
		if err := db.Err(); err == nil || !strings.Contains(err.Error(), "taken the file over") {
			t.Errorf("%s: the store says %v", name, err)
		}
		if _, err := db.Claim(t.Context(), map[string]int{"a": 1}); !errors.Is(err, holdfast.ErrClosed) {
			t.Errorf("%s: claim: got %v, want ErrClosed", name, err)
		}
		if _, err := db.Enqueue(t.Context(), holdfast.Message{Destination: "a", Endpoint: "E"}); !errors.Is(err, holdfast.ErrClosed) {
			t.Errorf("%s: enqueue: got %v, want ErrClosed", name, err)
		}
		if r, err := db.Get(t.Context(), "m"); err != nil || r.State == holdfast.Delivered {
			t.Errorf("%s: the message is %s, %v", name, r.State, err)
		}
		if _, err := db.Get(t.Context(), "late"); !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("%s: got %v, want that nothing was written", name, err)
		}
		shut(t, db)
		again := open(t, path, sqlite.Options{})
		audit(t, again)
		shut(t, again)
	}
}

func TestNoTransactionOfAClosedStore(t *testing.T) {
	t.Parallel()
	db := fresh(t, sqlite.Options{})
	shut(t, db)
	if err := db.Do(t.Context(), func(context.Context, *sqlite.Tx) error { return nil }); !errors.Is(err, holdfast.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
	eachHandle(t, func(t *testing.T, h handle) { // the program's own pool lives on
		t.Helper()
		a := h.attach(t, filepath.Join(t.TempDir(), "app.db"), sqlite.Options{})
		shut(t, a.DB)
		if _, err := a.Get(t.Context(), "m"); !errors.Is(err, holdfast.ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
}

// F1-45: another program that holds the right to write is no failure of ours:
// the call may be made again.
func TestAnotherProgramThatWritesForLong(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	db := open(t, path, sqlite.Options{})
	other := raw(t, path)
	other.SetMaxOpenConns(1)
	run(t, other, "BEGIN IMMEDIATE")
	if _, err := db.Enqueue(t.Context(), message("m")); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("enqueue: got %v", err)
	}
	if err := db.Do(t.Context(), func(context.Context, *sqlite.Tx) error { return nil }); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("do: got %v", err)
	}
	run(t, other, "ROLLBACK")
	if _, err := db.Enqueue(t.Context(), message("m")); err != nil {
		t.Errorf("with the right to write free again: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// F1-56: a file that has a second name, in another folder, would have a lock and
// a log by each.
func TestAFileWithTwoNamesIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	db, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	second := filepath.Join(t.TempDir(), "holdfast.db")
	if err := os.Link(path, second); err != nil {
		t.Skip("no hard links here:", err)
	}
	refused := func(path string) {
		t.Helper()
		if other, err := sqlite.Open(t.Context(), path, sqlite.Options{}); !errors.Is(err, sqlite.ErrLinked) {
			t.Errorf("got %v, want it refused", err)
			if err == nil {
				_ = other.Close()
			}
		}
	}
	refused(second)
	if _, err := db.Enqueue(t.Context(), message("m")); err != nil {
		t.Errorf("the owner: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	refused(second)
	refused(path)
	if files, _ := filepath.Glob(second + "?*"); len(files) != 0 {
		t.Errorf("beside the second name there is %q", files)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	db, err = sqlite.Open(t.Context(), second, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := db.Counts().Pending; got != 1 {
		t.Errorf("%d messages wait, want 1", got)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// A stop in the moment of the start hangs nowhere, loses nothing and leaves no lock.
func TestAStopMayMeetTheStart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	storetest.Opening(t, func(ctx context.Context) (storetest.Full, error) {
		return sqlite.Open(ctx, path, sqlite.Options{Source: "s"})
	})
}
