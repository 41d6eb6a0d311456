package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// halfSalvaged is a folder in which a salvage was cut short: the damaged file
// stands aside, and a new one has been begun.
func halfSalvaged(t testing.TB) (path, aside string) {
	t.Helper()
	path = specimens(t)[0].write(t, func(_ string, content []byte) []byte {
		clear(content[:4096])
		return content
	})
	db := open(t, path, sqlite.Options{Source: "node"})
	list := db.Damage()
	shut(t, db)
	if len(list) != 1 {
		t.Fatalf("set aside: %+v", list)
	}
	aside = list[0].File
	undone(t, aside)
	run(t, raw(t, path), "DELETE FROM hf_meta WHERE key = 'salvaged'")
	return path, aside
}

// undone makes a report say that salvage has not ended.
func undone(t testing.TB, aside string) {
	t.Helper()
	report := string(contents(t, aside+".json")[0])
	if err := os.WriteFile(aside+".json", []byte(strings.Replace(report, `"done": true`, `"done": false`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// OI-12, OI-14: a mark of damage is the old database's. The restored one is not
// set aside for it.
func TestRestoreLeavesTheMarkOfDamageBehind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := os.WriteFile(w.path+".damaged", []byte("seen on a Monday\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := sqlite.Restore(t.Context(), w.copied, w.path, sqlite.RestoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if string(contents(t, r.Kept+".damaged")[0]) != "seen on a Monday\n" {
		t.Error("the mark is not kept with the old database")
	}
	db := open(t, w.path, sqlite.Options{})
	defer shut(t, db)
	if d := db.Damage(); len(d) != 0 {
		t.Errorf("the restored database was set aside: %v", &d[0])
	}
}

// OI-12, OI-14: a restore ends the salvage of what stood there, however far it
// had come, and says so.
func TestRestoreEndsASalvage(t *testing.T) {
	t.Parallel()
	copied := newWorld(t).copied
	t.Run("that fills a new file", func(t *testing.T) {
		t.Parallel()
		path, aside := halfSalvaged(t)
		r, err := sqlite.Restore(t.Context(), copied, path, sqlite.RestoreOptions{})
		if err != nil || r.Kept != kept(t, path) || r.Kept == "" {
			t.Fatalf("%+v, %v", r, err)
		}
		restoredInstead(t, path, aside)
	})
	t.Run("that was only noted", func(t *testing.T) {
		t.Parallel()
		path, aside := halfSalvaged(t)
		was := contents(t, aside)[0]
		for _, side := range []string{"-wal", ""} { // back where it stood
			if err := os.Rename(aside+side, path+side); err != nil && side == "" {
				t.Fatal(err)
			}
		}
		r, err := sqlite.Restore(t.Context(), copied, path, sqlite.RestoreOptions{})
		if err != nil || r.Kept != aside {
			t.Fatalf("%+v, %v; want %s", r, err, aside)
		}
		if string(contents(t, aside)[0]) != string(was) {
			t.Error("what was set aside is not the damaged file")
		}
		restoredInstead(t, path, aside)
	})
}

func restoredInstead(t *testing.T, path, aside string) {
	t.Helper()
	if s := sound(t, path); len(s) != 100 {
		t.Errorf("%d messages, want the 100 of the backup", len(s))
	}
	db := open(t, path, sqlite.Options{})
	list := db.Damage()
	shut(t, db)
	if len(list) != 1 || list[0].File != aside || !list[0].Done || !list[0].Restored || !strings.Contains(list[0].String(), "backup was restored") {
		t.Errorf("reported: %+v", list)
	}
	if s := sound(t, path); len(s) != 100 {
		t.Errorf("%d messages after a start", len(s))
	}
}

// OI-12, OI-14: half a salvage, or a log of which SQLite would leave out the end,
// never passes for a backup of everything.
func TestNoBackupOfHalfADatabase(t *testing.T) {
	t.Parallel()
	to := filepath.Join(t.TempDir(), "copy.db")
	path, _ := halfSalvaged(t)
	if err := sqlite.BackupFile(t.Context(), path, to); !errors.Is(err, sqlite.ErrRecovering) || !strings.Contains(err.Error(), "start the node") {
		t.Errorf("half salvaged: %v", err)
	}
	db := open(t, path, sqlite.Options{SalvageWait: time.Nanosecond})
	if db.Recovering() {
		if err := db.Backup(t.Context(), to); err != nil && !errors.Is(err, sqlite.ErrRecovering) {
			t.Errorf("while it is being salvaged: %v", err)
		}
	}
	waittest.Until(t, "it is salvaged", func() bool { return !db.Recovering() })
	if err := db.Backup(t.Context(), to); err != nil {
		t.Errorf("salvaged: %v", err)
	}
	shut(t, db)
	_ = os.Remove(to)
	lossy := specimens(t)[1].write(t, func(suffix string, content []byte) []byte {
		if suffix == "-wal" {
			content[len(content)/2] ^= 4
		}
		return content
	})
	if err := sqlite.BackupFile(t.Context(), lossy, to); !errors.Is(err, sqlite.ErrDamaged) {
		t.Errorf("a log with a fault: %v", err)
	}
	other := filepath.Join(t.TempDir(), "holdfast.db")
	if _, err := sqlite.Restore(t.Context(), lossy, other, sqlite.RestoreOptions{}); !errors.Is(err, sqlite.ErrDamaged) {
		t.Errorf("restored from a log with a fault: %v", err)
	}
	for _, name := range []string{to, other} {
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s was made", name)
		}
	}
}

// OI-12: a disk that damages files may damage the one that is being salvaged
// into. The next start begins anew, and loses nothing of the first.
func TestDamageOfTheFileThatIsFilled(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(t *testing.T, path string){
		"a page": func(t *testing.T, path string) {
			t.Helper()
			content := contents(t, path)[0]
			clear(content[100:4096])
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"marked": func(t *testing.T, path string) {
			t.Helper()
			if err := os.WriteFile(path+".damaged", []byte("seen"), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"cut": func(t *testing.T, path string) {
			t.Helper()
			if err := os.Truncate(path, 50); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, aside := halfSalvaged(t)
			for range 2 { // and again
				harm(t, path)
				db := open(t, path, sqlite.Options{Source: "node"})
				list := db.Damage()
				if len(list) != 1 || list[0].File != aside || !list[0].Done || list[0].Salvaged.Pending == 0 {
					t.Errorf("got %+v, want the report of the first", list)
				}
				if n := db.Counts().Pending; n == 0 {
					t.Error("nothing was salvaged")
				}
				if _, err := os.Stat(aside + ".partial"); err != nil {
					t.Error(err)
				}
				if r, err := db.Enqueue(t.Context(), holdfast.Message{Destination: "a", Endpoint: "E", Payload: []byte("x")}); err != nil || len(r) != 1 {
					t.Errorf("nothing is accepted: %v", err)
				}
				shut(t, db)
				undone(t, aside)
				run(t, raw(t, path), "DELETE FROM hf_meta WHERE key = 'salvaged'")
			}
		})
	}
}

// OI-12: a salvage that was cut short and went on reports all that came of it.
func TestSalvageThatWentOnReportsEverything(t *testing.T) {
	t.Parallel()
	path := specimens(t)[0].write(t, func(_ string, content []byte) []byte {
		clear(content[:4096])
		for at := 12 * 4096; at < len(content); at += 8 * 4096 { // some pages of payloads are among them
			clear(content[at : at+4096])
		}
		return content
	})
	db := open(t, path, sqlite.Options{Source: "node"})
	first := db.Damage()
	shut(t, db)
	if len(first) != 1 || first[0].Salvaged.Broken == 0 {
		t.Fatalf("got %+v, want messages whose content is lost", first)
	}
	undone(t, first[0].File)
	run(t, raw(t, path), "DELETE FROM hf_meta WHERE key = 'salvaged'")
	db = open(t, path, sqlite.Options{Source: "node"})
	defer shut(t, db)
	if again := db.Damage(); !cmp.Equal(first, again) {
		t.Errorf("got %+v\nafter %+v", again, first)
	}
}

// OI-12: what others do to the schema is no damage. What they add is left
// alone; where they have changed a table of ours, nothing is touched.
func TestSchemaChangedByOthers(t *testing.T) {
	t.Parallel()
	for text, fine := range map[string]bool{
		"CREATE INDEX mine ON hf_message (created)":                          true,
		"CREATE TRIGGER mine AFTER INSERT ON hf_message BEGIN SELECT 1; END": true,
		"ANALYZE": true,
		"VACUUM":  true,
		"ALTER TABLE hf_message ADD COLUMN mine TEXT": false,
		"DROP INDEX hf_message_due":                   false,
	} {
		path := filepath.Join(t.TempDir(), "holdfast.db")
		db := open(t, path, sqlite.Options{})
		enqueue(t, db, message("1"))
		shut(t, db)
		run(t, raw(t, path), text)
		db, err := sqlite.Open(t.Context(), path, sqlite.Options{})
		switch {
		case !fine && (!errors.Is(err, sqlite.ErrForeign) || !strings.Contains(err.Error(), "undo that")):
			t.Errorf("%s: got %v", text, err)
		case fine && err != nil:
			t.Errorf("%s: %v", text, err)
		case fine:
			if d := db.Damage(); len(d) > 0 || db.Counts().Pending != 1 {
				t.Errorf("%s: %+v, %+v", text, d, db.Counts())
			}
			shut(t, db)
		}
		if list, err := sqlite.SetAside(filepath.Dir(path)); err != nil || len(list) > 0 {
			t.Errorf("%s: %+v, %v", text, list, err)
		}
	}
}

// SF28: who only looks is told of damage that the next start acts on.
func TestInspectTellsOfTheMark(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	shut(t, open(t, path, sqlite.Options{}))
	if err := os.WriteFile(path+".damaged", []byte("a page is wrong\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Inspect(t.Context(), path, sqlite.InspectOptions{}); !errors.Is(err, sqlite.ErrDamaged) || !strings.Contains(err.Error(), "a page is wrong") {
		t.Errorf("got %v, want ErrDamaged and what was noted", err)
	}
}

// OI-12, OI-14: killed anywhere in a restore that ends a salvage, the next start
// finds the salvage or the backup, whole.
func TestKilledDuringARestoreThatEndsASalvage(t *testing.T) {
	t.Parallel()
	copied := newWorld(t).copied
	path, aside := halfSalvaged(t)
	for n := 1; ; n++ {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(filepath.Dir(path))); err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, filepath.Base(path))
		report := filepath.Join(dir, filepath.Base(aside))
		_, out := start(t, "restore", copied, to, strconv.Itoa(n))
		said := out.all()
		if len(said) == 0 {
			break
		}
		want := 300 + specimenNotifications
		if point := said[0]; point != "copied" && point != "sealed" {
			want = 100
		}
		db := open(t, to, sqlite.Options{Source: "node", Adopt: true})
		list := db.Damage()
		shut(t, db)
		if len(list) != 1 || list[0].File != report || !list[0].Done || list[0].Restored != (want == 100) {
			t.Errorf("killed when %s: %+v", said[0], list)
		}
		if s := sound(t, to); len(s) != want {
			t.Errorf("killed when %s: %d messages, want %d", said[0], len(s), want)
		}
	}
}
