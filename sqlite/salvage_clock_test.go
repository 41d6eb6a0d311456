package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// spoilFile clears the first page of a store's file, so that it has to be salvaged, and those
// of the named tables.
func spoilFile(t *testing.T, path string, tables ...string) {
	t.Helper()
	content := contents(t, path)[0]
	pages := (&specimen{files: map[string][]byte{"": content}}).pagesOf(t)
	clear(content[:4096])
	for _, table := range tables {
		for _, n := range pages[table] {
			clear(content[(n-1)*4096 : n*4096])
		}
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// stoppedFor is the same machine after a stop of so long by its clock.
func (m *machine) stoppedFor(d time.Duration) *machine { return &machine{wall: m.wall.Add(d)} }

// heldAfterSalvage fails unless m is held, and nothing but "stays" can be delivered.
func heldAfterSalvage(t *testing.T, db *sqlite.DB) {
	t.Helper()
	if len(db.Damage()) != 1 {
		t.Fatal("nothing was salvaged")
	}
	if n := expireAll(t, db); n != 0 {
		t.Errorf("%d expired", n)
	}
	got := claim(t, db, 10)
	if len(got) != 1 || got[0].Message.ID != "stays" {
		t.Errorf("%d claims, want stays", len(got))
	}
	if r, err := db.Get(t.Context(), "m"); err != nil || r.State != holdfast.Pending || r.HeldUntil.IsZero() {
		t.Errorf("m is %s, held until %s: %v", r.State, r.HeldUntil, err)
	}
	if d := db.Doubt(); d.Claimed < 48*time.Hour || d.Held != 1 {
		t.Errorf("doubt: %+v", d)
	}
}

// F1-50, F1-51: what is held stays held when the file is salvaged, and what was known
// of the clock counts on: a stop that never was, a scale that is ahead of the clock.
func TestSalvageKeepsTheDoubt(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T) (path string, m *machine) {
		t.Helper()
		path, m = filepath.Join(t.TempDir(), "holdfast.db"), &machine{wall: noon}
		db := open(t, path, sqlite.Options{}.On(m.read))
		later := message("later")
		later.Destination, later.Delay = "c", 3*24*time.Hour
		enqueue(t, db, withTTL("m", 24*time.Hour), message("stays"), later)
		m.pass(time.Hour)
		newest := message("newest")
		newest.Destination = "b"
		enqueue(t, db, newest)
		shut(t, db)
		return path, m
	}
	t.Run("of a stop before the damage", func(t *testing.T) {
		t.Parallel()
		path, m := start(t)
		m = m.stoppedFor(48 * time.Hour)
		shut(t, open(t, path, sqlite.Options{}.On(m.read)))
		spoilFile(t, path)
		m = m.stoppedFor(time.Second)
		db := open(t, path, sqlite.Options{}.On(m.read))
		heldAfterSalvage(t, db)
		shut(t, db)
		m = m.stoppedFor(-48 * time.Hour) // it was wrong
		db = open(t, path, sqlite.Options{}.On(m.read))
		defer shut(t, db)
		if n := expireAll(t, db); n != 0 {
			t.Errorf("%d expired though the clock was put back", n)
		}
		r, err := db.Get(t.Context(), "m")
		if err != nil || !r.HeldUntil.IsZero() || r.Expires.Sub(m.wall).Round(time.Minute) != 23*time.Hour {
			t.Errorf("m is held until %s and ends in %s: %v", r.HeldUntil, r.Expires.Sub(m.wall), err)
		}
		m.pass(24 * time.Hour)
		if n := expireAll(t, db); n != 1 {
			t.Errorf("%d expired after their time, want 1", n)
		}
	})
	t.Run("of a stop that the salvage ends", func(t *testing.T) {
		t.Parallel()
		path, m := start(t)
		spoilFile(t, path)
		m = m.stoppedFor(49 * time.Hour)
		db := open(t, path, sqlite.Options{}.On(m.read))
		defer shut(t, db)
		heldAfterSalvage(t, db)
	})
	t.Run("of a stop that never was", func(t *testing.T) {
		t.Parallel()
		path, m := start(t)
		m = m.stoppedFor(48 * time.Hour)
		db := open(t, path, sqlite.Options{}.On(m.read))
		m.step(-48 * time.Hour)
		expireAll(t, db)
		shut(t, db)
		spoilFile(t, path)
		m = m.stoppedFor(0)
		db = open(t, path, sqlite.Options{}.On(m.read))
		defer shut(t, db)
		if d := db.Doubt(); d.Claimed != 0 {
			t.Errorf("doubt: %+v", d)
		}
		m.pass(22 * time.Hour)
		if n := expireAll(t, db); n != 0 {
			t.Errorf("%d expired before their time", n)
		}
		r, err := db.Get(t.Context(), "later")
		if err != nil || r.Due.Sub(m.wall).Round(time.Hour) > time.Hour {
			t.Errorf("what the leap made due is due in %s: %v", r.Due.Sub(m.wall), err)
		}
		m.pass(2 * time.Hour)
		if n := expireAll(t, db); n != 1 {
			t.Errorf("%d expired after their time, want 1", n)
		}
	})
	for name, damage := range map[string]func(t *testing.T, path string){
		"a file that does not tell": func(t *testing.T, path string) { t.Helper(); spoilFile(t, path, "hf_meta") },
		"leaps that are not text":   setting("leaps", "17"),
		"leaps that cannot be read": setting("leaps", "'[{'"),
		"no leaps at all":           after("DELETE FROM hf_meta WHERE key = 'leaps'"),
		"an instant that was lost":  setting("clock", "'x'"),
		"an instant of long ago":    setting("clock", "value - 70000000000"),
		"a clock beyond its latest": setting("wall", "value + 140737488355328"),
	} {
		t.Run("of all time: "+name, func(t *testing.T) {
			t.Parallel()
			path, m := start(t)
			damage(t, path)
			m = m.stoppedFor(time.Second)
			m.pass(48 * time.Hour) // a stop of unknown length
			db := open(t, path, sqlite.Options{}.On(m.read))
			defer shut(t, db)
			heldAfterSalvage(t, db)
			m.pass(23 * time.Hour)
			if n := expireAll(t, db); n != 0 {
				t.Errorf("%d expired within the hold", n)
			}
			m.pass(2 * time.Hour)
			if n := expireAll(t, db); n != 1 {
				t.Errorf("%d expired after the hold, want 1", n)
			}
		})
	}
	t.Run("an instant that is years ahead has not passed", func(t *testing.T) {
		t.Parallel()
		path, m := start(t)
		setting("clock", "value + 140737488355328")(t, path)
		m = m.stoppedFor(time.Second)
		db := open(t, path, sqlite.Options{}.On(m.read))
		defer shut(t, db)
		m.pass(22 * time.Hour)
		if n := expireAll(t, db); n != 0 {
			t.Errorf("%d expired before their time", n)
		}
		m.pass(2 * time.Hour)
		if n := expireAll(t, db); n != 1 {
			t.Errorf("%d expired after their time, want 1", n)
		}
	})
}

// setting changes one value of hf_meta, and damages the file so that it is salvaged.
func setting(key, value string) func(t *testing.T, path string) {
	return after("UPDATE hf_meta SET value = " + value + " WHERE key = '" + key + "'")
}

func after(statement string) func(t *testing.T, path string) {
	return func(t *testing.T, path string) {
		t.Helper()
		db := raw(t, path)
		run(t, db, statement)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		spoilFile(t, path)
	}
}

// F1-51: that a person has renewed the TTL of a message is in its history, by which its
// age is judged: a salvage keeps it, with every other kind of event.
func TestSalvageKeepsDecisions(t *testing.T) {
	t.Parallel()
	path, m := filepath.Join(t.TempDir(), "holdfast.db"), &machine{wall: noon}
	db := open(t, path, sqlite.Options{}.On(m.read))
	enqueue(t, db, withTTL("m", 24*time.Hour))
	shut(t, db)
	m = m.stoppedFor(48 * time.Hour)
	db = open(t, path, sqlite.Options{}.On(m.read))
	if _, err := db.Reschedule(t.Context(), "m", holdfast.Reschedule{Actor: "anna"}); err != nil {
		t.Fatal(err)
	}
	want, err := db.Get(t.Context(), "m")
	if err != nil {
		t.Fatal(err)
	}
	shut(t, db)
	spoilFile(t, path)
	db = open(t, path, sqlite.Options{}.On(m.read))
	defer shut(t, db)
	got, err := db.Get(t.Context(), "m")
	if err != nil || len(got.History) != len(want.History) || got.History[len(got.History)-1].Code != holdfast.CodeRenewed {
		t.Errorf("history %+v, want %+v; %v", got.History, want.History, err)
	}
	m.pass(23 * time.Hour)
	if n := expireAll(t, db); n != 0 {
		t.Errorf("%d expired within the TTL that was renewed", n)
	}
}
