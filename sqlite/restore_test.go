package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// copyChild makes a backup, or restores one, and dies at the nth point.
func copyChild(role string, args []string) {
	n, err := strconv.Atoi(args[2])
	must(err)
	at := func(point string) {
		if n--; n == 0 {
			say(point)
			die()
		}
	}
	if role == "restore" {
		must(sqlite.RestoreAt(context.Background(), args[0], args[1], at))
		return
	}
	db, err := sqlite.Open(context.Background(), args[0], sqlite.Options{Adopt: true}.Copying(nil, at))
	must(err)
	must(db.Backup(context.Background(), args[1]))
	must(db.Close())
}

// world is a folder with a copy and a database that its process left behind,
// with content in its log, after the copy was made.
type world struct{ dir, copied, path string }

func newWorld(t testing.TB) world {
	t.Helper()
	w := world{dir: t.TempDir()}
	w.copied, w.path = filepath.Join(w.dir, "copy.db"), filepath.Join(w.dir, "holdfast.db")
	db := open(t, filepath.Join(t.TempDir(), "holdfast.db"), sqlite.Options{})
	fill(t, db, "both", 100)
	if err := db.Backup(t.Context(), w.copied); err != nil {
		t.Fatal(err)
	}
	enqueue(t, db, message("later"))
	crashed := copyOf(t, db.Path())
	shut(t, db)
	for _, suffix := range []string{"", "-wal"} {
		if err := os.Rename(crashed+suffix, w.path+suffix); err != nil {
			t.Fatal(err) // the log must be there, or the test proves little
		}
	}
	return w
}

// copy gives a test a world of its own.
func (w world) copy(t testing.TB) world {
	t.Helper()
	to := world{dir: t.TempDir()}
	to.copied, to.path = filepath.Join(to.dir, "copy.db"), filepath.Join(to.dir, "holdfast.db")
	if err := os.CopyFS(to.dir, os.DirFS(w.dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

func kept(t testing.TB, path string) string {
	t.Helper()
	found, err := filepath.Glob(path + ".before-*Z")
	if err != nil || len(found) > 1 {
		t.Fatalf("%q, %v", found, err)
	}
	return strings.Join(found, "")
}

func meta(t testing.TB, path string) map[string]string {
	t.Helper()
	db := open(t, path, sqlite.Options{})
	defer shut(t, db)
	rows, err := db.SQL(t.Context(), "SELECT key, value FROM hf_meta")
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]string{}
	for _, r := range rows {
		m[fmt.Sprint(r[0])] = fmt.Sprint(r[1])
	}
	return m
}

// OI-14: the copy stands in the place of the database; what stood there is
// kept with its log; claims of before mean nothing.
func TestOI14Restore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	copied := meta(t, w.copy(t).copied)
	before := contents(t, w.copied)[0]
	if err := os.Chmod(w.path, 0o640); err != nil {
		t.Fatal(err)
	}
	r, err := sqlite.Restore(t.Context(), w.copied, w.path, sqlite.RestoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(w.path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("rights %v, %v; want those of the old database", info.Mode(), err)
	}
	if r.Path != w.path || r.Kept != kept(t, w.path) || r.Size == 0 {
		t.Errorf("got %+v, kept %q", r, kept(t, w.path))
	}
	db := open(t, w.path, sqlite.Options{})
	if db.Careful() != 1000 {
		t.Errorf("%d careful settlements, want 1000", db.Careful())
	}
	shut(t, db)
	restored := meta(t, w.path)
	if restored["incarnation"] == copied["incarnation"] || len(restored["incarnation"]) != 36 {
		t.Errorf("incarnation %q after %q", restored["incarnation"], copied["incarnation"])
	}
	if a, b := restored["epoch"], copied["epoch"]; a <= b {
		t.Errorf("epoch %s after %s", a, b)
	}
	if s := sound(t, w.path); len(s) != 100 || s["later"] != 0 {
		t.Errorf("restored: %d messages", len(s))
	}
	if s := sound(t, r.Kept); len(s) != 101 {
		t.Errorf("kept: %d messages, want 101: the last one was in the log", len(s))
	}
	if !slices.Equal(before, contents(t, w.copied)[0]) {
		t.Error("the copy was changed")
	}
	// And back again: what was kept can be restored, too.
	if _, err := sqlite.Restore(t.Context(), r.Kept, w.path, sqlite.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	if s := sound(t, w.path); len(s) != 101 {
		t.Errorf("back again: %d messages", len(s))
	}
}

// With a log that never reached the file, as a dead process leaves it.
func TestOI14RestoreWithItsLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	to := filepath.Join(t.TempDir(), "new", "holdfast.db")
	r, err := sqlite.Restore(t.Context(), w.path, to, sqlite.RestoreOptions{})
	if err != nil || r.Kept != "" {
		t.Fatalf("%+v, %v", r, err)
	}
	if s := sound(t, to); len(s) != 101 {
		t.Errorf("%d messages, want 101", len(s))
	}
}

func TestOI14WhatARestoreRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	file := func(name string, b []byte) string {
		path := filepath.Join(w.dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	whole := contents(t, w.copied)[0]
	torn := slices.Clone(whole)
	for i := 8192; i < len(torn); i += 4096 {
		copy(torn[i:i+100], make([]byte, 100))
	}
	newer := file("newer.db", whole)
	run(t, raw(t, newer), "UPDATE hf_meta SET value = 9999 WHERE key IN ('schema', 'schema_again')")
	foreign := filepath.Join(w.dir, "foreign.db")
	run(t, raw(t, foreign), "CREATE TABLE mine (n)")
	live := open(t, filepath.Join(w.dir, "live.db"), sqlite.Options{})
	defer shut(t, live)
	before := contents(t, w.path, w.path+"-wal")
	for name, c := range map[string]struct {
		from, to string
		want     error
		text     string
	}{
		"a live node":        {w.copied, live.Path(), sqlite.ErrOwned, "process"},
		"from a live node":   {live.Path(), w.path, sqlite.ErrOwned, "make a backup of it instead"},
		"nothing there":      {filepath.Join(w.dir, "none.db"), w.path, fs.ErrNotExist, "none.db"},
		"a folder":           {w.dir, w.path, sqlite.ErrForeign, w.dir},
		"itself":             {w.path, w.path, fs.ErrInvalid, "the database itself"},
		"no database":        {file("text.db", []byte(strings.Repeat("no database ", 1000))), w.path, sqlite.ErrDamaged, ""},
		"an empty file":      {file("empty.db", nil), w.path, sqlite.ErrForeign, ""},
		"another program's":  {foreign, w.path, sqlite.ErrForeign, "not a Holdfast database"},
		"cut short":          {file("short.db", whole[:len(whole)/2]), w.path, sqlite.ErrDamaged, ""},
		"damaged":            {file("torn.db", torn), w.path, sqlite.ErrDamaged, ""},
		"of a newer release": {newer, w.path, sqlite.ErrNewer, "9999"},
	} {
		_, err := sqlite.Restore(t.Context(), c.from, c.to, sqlite.RestoreOptions{})
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v, want %v with %q", name, err, c.want, c.text)
		}
		if !slices.EqualFunc(before, contents(t, w.path, w.path+"-wal"), slices.Equal) || kept(t, w.path) != "" {
			t.Errorf("%s: the database was touched", name)
		}
		if left, _ := filepath.Glob(w.path + ".resto*"); len(left) > 0 {
			t.Errorf("%s: left over: %q", name, left)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sqlite.Restore(ctx, w.copied, w.path, sqlite.RestoreOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
	if len(sound(t, w.path)) != 101 {
		t.Error("the database is not what it was")
	}
}

// A process that is killed anywhere in a restore leaves the old database or
// the new one, whole, and never the log of one beside the file of the other.
func TestOI14KilledDuringARestore(t *testing.T) {
	t.Parallel()
	template := newWorld(t)
	points := map[string]bool{}
	for n := 1; ; n++ {
		w := template.copy(t)
		_, out := start(t, "restore", w.copied, w.path, fmt.Sprint(n))
		said := out.all()
		if len(said) == 0 {
			if n < 8 {
				t.Errorf("only %d points were reached", n-1)
			}
			break
		}
		point := said[0]
		points[point] = true
		again := w.copy(t)
		states := sound(t, w.path)
		switch whole := point != "copied" && point != "sealed"; {
		case !whole && (len(states) != 101 || kept(t, w.path) != ""):
			t.Errorf("killed when %s: %d messages, kept %q; want the old database", point, len(states), kept(t, w.path))
		case whole && len(states) != 100:
			t.Errorf("killed when %s: %d messages, want the new database", point, len(states))
		case whole && len(sound(t, kept(t, w.path))) != 101:
			t.Errorf("killed when %s: what was kept is not the old database", point)
		}
		// A restore that comes first, instead of an open, does as well.
		if _, err := sqlite.Restore(t.Context(), again.copied, again.path, sqlite.RestoreOptions{}); err != nil {
			t.Errorf("killed when %s: restore again: %v", point, err)
		}
		if s := sound(t, again.path); len(s) != 100 {
			t.Errorf("killed when %s: %d messages after another restore", point, len(s))
		}
		if left, _ := filepath.Glob(again.path + ".resto*"); len(left) > 0 {
			t.Errorf("killed when %s: left over: %q", point, left)
		}
	}
	for _, p := range []string{"copied", "sealed", "ready", "aside", "aside-wal", "cleared", "switched"} {
		if !points[p] {
			t.Errorf("the test never died when %q; it did when %q", p, slices.Sorted(maps.Keys(points)))
		}
	}
}

// A backup that is killed leaves no file under its name, or a whole one; what
// it leaves besides is removed by the next.
func TestOI14KilledDuringABackup(t *testing.T) {
	t.Parallel()
	template := newWorld(t)
	points := map[string]bool{}
	for n := 1; ; n++ {
		w := template.copy(t)
		to := filepath.Join(w.dir, "backups", "new.db")
		if err := os.Mkdir(filepath.Dir(to), 0o750); err != nil {
			t.Fatal(err)
		}
		_, out := start(t, "backup", w.path, to, fmt.Sprint(n))
		said := out.all()
		if len(said) == 0 {
			break
		}
		points[said[0]] = true
		if _, err := os.Stat(to); (err == nil) != (said[0] == "named") {
			t.Errorf("killed when %s: %v", said[0], err)
		}
		db := open(t, w.path, sqlite.Options{})
		audit(t, db)
		_ = os.Remove(to)
		if err := db.Backup(t.Context(), to); err != nil {
			t.Errorf("killed when %s: the next backup: %v", said[0], err)
		}
		shut(t, db)
		if left := names(t, filepath.Dir(to)); !slices.Equal(left, []string{".holdfast-backup.lock", "new.db"}) {
			t.Errorf("killed when %s: the next backup left %q", said[0], left)
		}
		if len(sound(t, to)) != 101 {
			t.Errorf("killed when %s: the next backup is not whole", said[0])
		}
	}
	for _, p := range []string{"step", "copied", "sealed", "named"} {
		if !points[p] {
			t.Errorf("the test never died when %q", p)
		}
	}
}

// A database that nobody uses is copied with its log, and not changed.
func TestOI14BackupOfAFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := contents(t, w.path, w.path+"-wal")
	to := filepath.Join(t.TempDir(), "copy.db")
	if err := sqlite.BackupFile(t.Context(), w.path, to); err != nil {
		t.Fatal(err)
	}
	if !slices.EqualFunc(before, contents(t, w.path, w.path+"-wal"), slices.Equal) {
		t.Error("the database was changed")
	}
	if s := sound(t, to); len(s) != 101 {
		t.Errorf("%d messages", len(s))
	}
	db := open(t, w.path, sqlite.Options{})
	defer shut(t, db)
	for name, c := range map[string]struct {
		from string
		want error
	}{"in use": {w.path, sqlite.ErrOwned}, "nothing there": {filepath.Join(w.dir, "none.db"), fs.ErrNotExist}} {
		if err := sqlite.BackupFile(t.Context(), c.from, filepath.Join(w.dir, "x.db")); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	if _, err := os.Stat(filepath.Join(w.dir, "none.db.lock")); err == nil {
		t.Error("a lock was made where no database is")
	}
}

// A backup that was not made is never said to be.
func TestOI14NoBackupOfWhatIsInDoubt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	loop, twice := filepath.Join(dir, "loop.db"), filepath.Join(dir, "twice.db")
	if err := os.Symlink(loop, loop); err != nil {
		t.Skip(err)
	}
	for _, stamp := range []string{"20260102T030405Z", "20260102T030406Z"} {
		if err := os.WriteFile(twice+".restored-"+stamp, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for from, want := range map[string]string{loop: "too many links", twice: "two restores"} {
		to := filepath.Join(dir, "copy.db")
		err := sqlite.BackupFile(t.Context(), from, to)
		if _, made := os.Stat(to); err == nil || !strings.Contains(err.Error(), want) || made == nil {
			t.Errorf("%s: got %v, want %q and no copy", from, err, want)
		}
	}
}

// A file that only looks as if a restore had left it keeps nobody from starting.
func TestOI14AFileThatNoRestoreLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{".restored-by-anna", ".restored-20260102T030405Z-wal"} {
		if err := os.WriteFile(w.path+name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	db := open(t, w.path, sqlite.Options{})
	if d := db.Damage(); len(d) > 0 {
		t.Errorf("it takes the place of the database: %v", d)
	}
	enqueue(t, db, message("after"))
	shut(t, db)
}

// What was restored is delivered, and what was delivered before is delivered
// again under its id.
func TestOI14RestoreThenDeliver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := sqlite.Restore(t.Context(), w.copied, w.path, sqlite.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	db := open(t, w.path, sqlite.Options{})
	defer shut(t, db)
	delivered := 0
	for delivered < 100 {
		claims := claim(t, db, 30)
		if len(claims) == 0 {
			t.Fatalf("no claims after %d deliveries", delivered)
		}
		for _, c := range claims {
			if won, err := db.Settle(t.Context(), settlement(c, holdfast.Delivered)); err != nil || !won[0] {
				t.Fatalf("%v, %v", won, err)
			}
			delivered++
		}
	}
	enqueue(t, db, message("later"))
	audit(t, db)
}

// What was in hand when the copy was made is pending after a restore, and has
// not been charged: nobody died.
func TestOI14ClaimsOfTheCopyAreForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	db := open(t, w.path, sqlite.Options{}) // careful: claims are written down
	id := claim(t, db, 1)[0].Message.ID
	if n := onDisk(t, db, 1); n != 1 {
		t.Fatalf("%d claims on disk, want 1", n)
	}
	copied := filepath.Join(w.dir, "claimed.db")
	if err := db.Backup(t.Context(), copied); err != nil {
		t.Fatal(err)
	}
	shut(t, db)
	if _, err := sqlite.Restore(t.Context(), copied, w.path, sqlite.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	db = open(t, w.path, sqlite.Options{})
	defer shut(t, db)
	r, err := db.Get(t.Context(), id)
	reclaimed := slices.ContainsFunc(r.History, func(e holdfast.Entry) bool { return e.Kind == holdfast.Reclaimed })
	if err != nil || r.State != holdfast.Pending || r.Failures+r.Tries != 0 || reclaimed {
		t.Errorf("got %s, %d failures, history %+v, %v; want pending as if never tried", r.State, r.Failures, r.History, err)
	}
}
