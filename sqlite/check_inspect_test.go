package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// used is a file with a message that waits for a, one that is parked at b, and
// a lane that is held.
func used(t testing.TB, path string) *sqlite.DB {
	t.Helper()
	db := open(t, path, sqlite.Options{})
	enqueue(t, db, holdfast.Message{ID: "w", Destination: "a", Endpoint: "E"}, holdfast.Message{ID: "p", Destination: "b", Endpoint: "E"})
	claimed, err := db.Claim(t.Context(), map[string]int{"a": 1, "b": 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range claimed.Claims {
		to := holdfast.Pending
		if c.Message.ID == "p" {
			to = holdfast.Parked
		}
		if _, err := db.Settle(t.Context(), settlement(c, to)); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

// everything is every file of a folder with its bytes.
func everything(t testing.TB, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		all[e.Name()] = string(contents(t, filepath.Join(dir, e.Name()))[0])
	}
	return all
}

func look(t testing.TB, path string, o sqlite.InspectOptions) sqlite.Inspection {
	t.Helper()
	in, err := sqlite.Inspect(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func TestInspectTellsWhatIsInAFileAndLeavesItAsItIs(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	begun := time.Now().Add(-time.Second)
	db := used(t, path)
	crashed := copyOf(t, path) // with the log, without its index
	shut(t, db)

	before := everything(t, filepath.Dir(path))
	for name, o := range map[string]sqlite.InspectOptions{"bounded": {Within: time.Minute}, "full": {Full: true}} {
		in := look(t, path, o)
		if in.Latest.Before(begun) || in.Latest.After(time.Now().Add(time.Second)) || in.SQLite == "" {
			t.Errorf("%s: got %+v, want the time of the last write and a version", name, in)
		}
		if in.Integrity.Checked != in.Integrity.Tables || in.Integrity.Tables < 10 || len(in.Integrity.Problems)+len(in.Integrity.Left) > 0 {
			t.Errorf("%s: got %+v, want a sound file", name, in.Integrity)
		}
		got := []any{in.WAL, in.Schema, in.Newest, in.Parked, in.Waiting}
		want := []any{true, 1, 1, map[string]int64{"b": 1}, []string{"a"}}
		want[1], want[2] = in.Newest, in.Newest
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff(before, everything(t, filepath.Dir(path))); diff != "" {
		t.Errorf("the folder is not what it was (-want +got):\n%s", diff)
	}

	before = everything(t, filepath.Dir(crashed))
	if _, err := sqlite.Inspect(t.Context(), crashed, sqlite.InspectOptions{}); !errors.Is(err, sqlite.ErrLogWaits) {
		t.Errorf("got %v of a log without index, want ErrLogWaits", err)
	}
	if diff := cmp.Diff(before, everything(t, filepath.Dir(crashed))); diff != "" {
		t.Errorf("the folder is not what it was (-want +got):\n%s", diff)
	}
}

// What a process that was killed leaves is read with its log, and not merged.
func TestInspectReadsTheLogOfAKilledOwner(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	db := used(t, path)
	crashed := copyOf(t, path)
	if err := os.WriteFile(crashed+"-shm", contents(t, path+"-shm")[0], 0o600); err != nil {
		t.Fatal(err)
	}
	defer shut(t, db)
	before := everything(t, filepath.Dir(crashed))
	in := look(t, crashed, sqlite.InspectOptions{Within: time.Minute})
	if diff := cmp.Diff(map[string]int64{"b": 1}, in.Parked); diff != "" || len(in.Integrity.Problems) > 0 {
		t.Errorf("got %+v (-want +got):\n%s", in, diff)
	}
	after := everything(t, filepath.Dir(crashed))
	delete(before, "crashed.db-shm") // SQLite's own notes, not part of the data
	delete(after, "crashed.db-shm")
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the folder is not what it was (-want +got):\n%s", diff)
	}
}

func TestInspectFindsDamage(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	shut(t, used(t, path))
	good := contents(t, path)[0]
	for name, c := range map[string]struct {
		bytes   []byte
		problem bool // named by the check, else an error
	}{
		"nothing like a database": {bytes: []byte(strings.Repeat("holdfast", 4096))},
		"cut off":                 {bytes: good[:len(good)-8192]},
		"cut off in its header":   {bytes: good[:60]},
		"its tables written over": {bytes: slices.Concat(good[:8192], make([]byte, len(good)-8192))},
		"a page written over":     {bytes: slices.Concat(good[:len(good)-4096], make([]byte, 4096)), problem: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bad := filepath.Join(t.TempDir(), "bad.db")
			if err := os.WriteFile(bad, c.bytes, 0o600); err != nil {
				t.Fatal(err)
			}
			in, err := sqlite.Inspect(t.Context(), bad, sqlite.InspectOptions{Within: time.Minute})
			if !c.problem && !errors.Is(err, sqlite.ErrDamaged) {
				t.Errorf("got %v, want ErrDamaged", err)
			}
			if c.problem && len(in.Integrity.Problems) == 0 {
				t.Errorf("got %+v, %v; want problems", in, err)
			}
		})
	}
}

func TestInspectOfWhatIsNotYetAFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := sqlite.Inspect(t.Context(), filepath.Join(dir, "none.db"), sqlite.InspectOptions{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want os.ErrNotExist", err)
	}
	empty := filepath.Join(dir, "empty.db")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if in := look(t, empty, sqlite.InspectOptions{Full: true}); in.Schema != 0 || in.SQLite == "" {
		t.Errorf("got %+v, want a version and no tables", in)
	}
}

func TestInspectSaysWhatItsTimeDidNotSufficeFor(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	shut(t, used(t, path))
	in := look(t, path, sqlite.InspectOptions{Within: time.Nanosecond})
	if in.Integrity.Checked+len(in.Integrity.Left) != in.Integrity.Tables || len(in.Integrity.Left) == 0 {
		t.Errorf("got %+v, want all tables, checked or left", in.Integrity)
	}
}

func TestInspectDoesNotGuessAtANewerRelease(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	shut(t, used(t, path))
	db := raw(t, path)
	run(t, db, "UPDATE hf_meta SET value = 99 WHERE key IN ('schema', 'schema_again')")
	run(t, db, "DROP TABLE hf_entry")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if in := look(t, path, sqlite.InspectOptions{}); in.Schema != 99 || len(in.Parked) > 0 {
		t.Errorf("got %+v, want schema 99 and nothing else", in)
	}
}
