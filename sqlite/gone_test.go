package sqlite_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// A file that is deleted or replaced under the running store: nothing more is
// acknowledged, whatever was asked for, and the store says why it stopped.
func TestFileTakenAwayStopsTheStore(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not let an open database be deleted")
	}
	for name, take := range map[string]func(path string) error{
		"deleted":     os.Remove,
		"log deleted": func(path string) error { return os.Remove(path + "-wal") },
		"moved":       func(path string) error { return os.Rename(path, path+".old") },
		"replaced": func(path string) error {
			return errors.Join(os.WriteFile(path+".new", []byte("something else"), 0o600), os.Rename(path+".new", path))
		},
	} {
		for what, act := range map[string]func(db *sqlite.DB) error{
			"enqueue": func(db *sqlite.DB) error {
				_, err := db.Enqueue(context.Background(), message("late"))
				return err
			},
			"do": func(db *sqlite.DB) error {
				return db.Do(context.Background(), func(ctx context.Context, tx *sqlite.Tx) error {
					_, err := tx.Enqueue(ctx, message("late"))
					return err
				})
			},
			"claim": func(db *sqlite.DB) error {
				_, err := db.Claim(context.Background(), map[string]int{"a": 1})
				return err
			},
			"nothing": (*sqlite.DB).Present,
			"read": func(db *sqlite.DB) error {
				db.DropReaders()
				_, err := db.LaneFaults(context.Background())
				return err
			},
			"get": func(db *sqlite.DB) error {
				db.DropReaders()
				_, err := db.Get(context.Background(), "m")
				return err
			},
		} {
			if (name == "log deleted" || name == "replaced") && (what == "read" || what == "get") {
				continue // nothing keeps a reader from what is left, or from the log
			}
			path := filepath.Join(t.TempDir(), "holdfast.db")
			db := open(t, path, sqlite.Options{})
			enqueue(t, db, message("m"))
			if err := take(path); err != nil {
				t.Fatal(err)
			}
			if err := act(db); !errors.Is(err, holdfast.ErrClosed) || !strings.Contains(err.Error(), "deleted, moved or replaced") {
				t.Errorf("%s, %s: got %v, want ErrClosed and why", name, what, err)
			}
			select {
			case <-db.Failed():
			default:
				t.Errorf("%s, %s: the store has not stopped", name, what)
			}
			shut(t, db)
		}
	}
}

// A folder that was copied while the node ran holds the same messages: a
// second node on it would deliver them again. One that was closed may be moved.
func TestCopyOfARunningStoreIsRefused(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("other systems do not tell which file it is")
	}
	path := filepath.Join(t.TempDir(), "holdfast.db")
	db := open(t, path, sqlite.Options{})
	enqueue(t, db, message("m"))
	copied := copyOf(t, path)
	_, err := sqlite.Open(t.Context(), copied, sqlite.Options{})
	if !errors.Is(err, sqlite.ErrCopied) || !strings.Contains(err.Error(), "holdfast restore") {
		t.Errorf("got %v, want ErrCopied and the way out", err)
	}
	adopted := open(t, copied, sqlite.Options{Adopt: true})
	if got := stateOf(t, adopted, "m"); got != "pending" {
		t.Errorf("in the adopted copy the message is %s", got)
	}
	shut(t, adopted)
	shut(t, open(t, copied, sqlite.Options{})) // it is its own from now on
	shut(t, db)
	shut(t, open(t, copyOf(t, path), sqlite.Options{})) // closed cleanly
}

// The mark of the place is no reason to refuse where it cannot be believed.
func TestPlaceThatCannotBeBelieved(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	db := open(t, path, sqlite.Options{})
	enqueue(t, db, message("m"))
	for name, text := range map[string]string{
		"a flipped byte":  "UPDATE hf_meta SET value = CASE WHEN value LIKE '9%' THEN '8' ELSE '9' END || substr(value, 2) WHERE key = 'place'",
		"another restore": "UPDATE hf_meta SET value = 'restored' WHERE key = 'incarnation'",
		"none":            "DELETE FROM hf_meta WHERE key = 'place'",
	} {
		copied := copyOf(t, path)
		other := raw(t, copied)
		run(t, other, text)
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
		second, err := sqlite.Open(t.Context(), copied, sqlite.Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		shut(t, second)
	}
	shut(t, db)
}

// A disk that takes no writes: said at the start; later each call is refused and
// the next one succeeds once that is over.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	p := &tap{}
	db := fresh(t, sqlite.Options{}.With(p.wrap))
	defer shut(t, db)
	const errReadOnly sqliteError = 8
	p.set(nth(1, errReadOnly, "INSERT INTO hf_message"), nil)
	if _, err := db.Enqueue(t.Context(), message("m")); !errors.Is(err, sqlite.ErrReadOnly) || !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("got %v, want ErrReadOnly", err)
	}
	p.set(nil, nil)
	enqueue(t, db, message("m"))
}

// Files that may not be written are said at the start.
func TestFilesThatMayNotBeWritten(t *testing.T) {
	t.Parallel()
	if asNobody(t) {
		return
	}
	path := filepath.Join(t.TempDir(), "holdfast.db")
	shut(t, open(t, path, sqlite.Options{}))
	for _, name := range []string{path, path + ".lock"} {
		if err := os.Chmod(name, 0o400); err != nil {
			t.Fatal(err)
		}
		if _, err := sqlite.Open(t.Context(), path, sqlite.Options{}); !errors.Is(err, sqlite.ErrReadOnly) {
			t.Errorf("%s cannot be written: got %v, want ErrReadOnly", name, err)
		}
	}
}

// Damage that shows while the store runs: the call fails, the store stops, and
// the next start salvages all that was acknowledged.
//
// Edge cases 17, 20 and 25.
func TestDamageWhileRunning(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prefix string
		act    func(db *sqlite.DB) error
	}{
		"enqueue": {"INSERT INTO hf_body", func(db *sqlite.DB) error {
			_, err := db.Enqueue(context.Background(), message("late"))
			return err
		}},
		"claim": {"SELECT m.seq", func(db *sqlite.DB) error {
			db.ForgetFresh("a")
			_, err := db.Claim(context.Background(), map[string]int{"a": 1})
			return err
		}},
		"do": {"INSERT INTO business", func(db *sqlite.DB) error {
			return db.Do(context.Background(), insertAnd(message("late")))
		}},
	} {
		p := &tap{}
		path := filepath.Join(t.TempDir(), "holdfast.db")
		db := open(t, path, sqlite.Options{}.With(p.wrap))
		enqueue(t, db, message("m"), message("n"))
		p.set(nth(1, errCorrupt, c.prefix), nil)
		if name == "do" {
			p.set(nth(1, errCorrupt, "SELECT value"), nil)
		}
		if err := c.act(db); !errors.Is(err, sqlite.ErrDamaged) && !errors.Is(err, holdfast.ErrClosed) {
			t.Errorf("%s: got %v, want ErrDamaged", name, err)
		}
		if err := db.Err(); !errors.Is(err, sqlite.ErrDamaged) || !strings.Contains(err.Error(), "start again") {
			t.Errorf("%s: the store says %v", name, err)
		}
		p.set(nil, nil)
		shut(t, db)
		db = open(t, path, sqlite.Options{})
		if d := db.Damage(); len(d) != 1 || !strings.Contains(d[0].Cause, "while it was in use") || d[0].Salvaged.Pending != 2 {
			t.Errorf("%s: reported %v", name, d)
		}
		if c := claim(t, db, 10); len(c) != 2 {
			t.Errorf("%s: %d claims, want 2", name, len(c))
		}
		audit(t, db)
		shut(t, db)
		db = open(t, path, sqlite.Options{}) // the mark is gone
		if len(db.Damage()) != 1 {
			t.Errorf("%s: set aside again", name)
		}
		shut(t, db)
	}
}

// Edge case 21: one bad message does not stop the others, and is never sent.
func TestBadMessageIsParked(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"payload":  "UPDATE hf_body SET payload = x'00' WHERE seq = 2",
		"headers":  `UPDATE hf_body SET headers = '{"a":"b"}' WHERE seq = 2`,
		"key":      "UPDATE hf_message SET id = 'another' WHERE seq = 2",
		"no body":  "DELETE FROM hf_body WHERE seq = 2",
		"the hash": "UPDATE hf_body SET hash = 1 WHERE seq = 2",
	} {
		for _, careful := range []bool{false, true} { // claims are written down
			path := filepath.Join(t.TempDir(), "holdfast.db")
			db := open(t, path, sqlite.Options{})
			enqueue(t, db, message("a"), message("b"), message("c"))
			use := path
			if careful {
				use = copyOf(t, path)
			}
			shut(t, db)
			other := raw(t, use)
			run(t, other, text)
			if err := other.Close(); err != nil {
				t.Fatal(err)
			}
			db = open(t, use, sqlite.Options{Adopt: true})
			if careful != (db.Careful() > 0) {
				t.Errorf("careful: %d", db.Careful())
			}
			if c := claim(t, db, 10); len(c) != 2 {
				t.Errorf("%s: %d claims, want 2", name, len(c))
			}
			p, err := db.List(t.Context(), holdfast.Query{States: []holdfast.State{holdfast.Parked}})
			if err != nil || len(p.Records) != 1 || p.Records[0].Reason != holdfast.ReasonUndecodable || p.Records[0].LastError == "" {
				t.Errorf("%s: parked %+v, %v", name, p.Records, err)
			}
			if n := db.Counts(); n.Parked != 1 || n.Pending != 2 {
				t.Errorf("%s: counted %+v", name, n)
			}
			// To retry it is no way to have it sent.
			if len(p.Records) == 1 {
				if _, err := db.Requeue(t.Context(), p.Records[0].Message.ID, holdfast.Requeue{}); err != nil {
					t.Error(err)
				}
				if c := claim(t, db, 10); len(c) != 0 {
					t.Errorf("%s: claimed after a retry: %v", name, c)
				}
			}
			shut(t, db)
		}
	}
}

// A salvage that is cut short goes on, however far it came, and nothing is
// accepted, delivered or lost twice.
//
// Edge case 18.
func TestSalvageMayBeCutShort(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "hundreds of stores, one after the other")
	s := specimens(t)[0]
	for n := 1; n < 60; n += 4 {
		path := s.write(t, func(_ string, content []byte) []byte {
			clear(content[:100])
			return content
		})
		p := &tap{}
		p.set(nth(n, errIOSync, "BEGIN IMMEDIATE", "COMMIT", "INSERT INTO hf_message", "CREATE"), nil)
		if _, err := sqlite.Open(t.Context(), path, sqlite.Options{Source: "node", Adopt: true}.With(p.wrap)); err == nil {
			t.Fatalf("statement %d: salvaged all the same", n)
		}
		db := survives(t, path)
		if db == nil {
			return
		}
		if v := s.examine(t, db); v.lost+v.undecodable+v.again+v.keptLost+v.unsent > 0 {
			t.Errorf("cut short at %d: %+v", n, v)
		}
		if d := db.Damage(); len(d) != 1 || !d[0].Done {
			t.Errorf("cut short at %d: %v", n, d)
		}
		shut(t, db)
	}
}

// While a large file is being salvaged, what has been salvaged is delivered,
// and nothing is accepted: an id might be known.
func TestSalvageInTheBackground(t *testing.T) {
	t.Parallel()
	s := specimens(t)[0]
	path := s.write(t, func(_ string, content []byte) []byte {
		clear(content[:100])
		return content
	})
	hold, held := make(chan struct{}), make(chan struct{})
	p := &tap{}
	p.set(func(sql string) error {
		if strings.HasPrefix(sql, "INSERT INTO hf_inbox ") {
			select {
			case held <- struct{}{}:
			default:
			}
			<-hold
		}
		return nil
	}, nil)
	db := open(t, path, sqlite.Options{Source: "node", SalvageWait: time.Millisecond}.With(p.wrap))
	defer shut(t, db)
	<-held
	m := s.done[0]
	_, enqueued := db.Enqueue(t.Context(), message("new"))
	_, kept := db.Keep(t.Context(), time.Hour, m)
	_, _, known := db.Known(t.Context(), time.Hour, m)
	_, processed := db.Process(t.Context(), m, time.Hour, nil)
	batch := db.ProcessBatch(t.Context(), []holdfast.Message{m}, time.Hour, nil)[0].Err
	for what, err := range map[string]error{"enqueue": enqueued, "keep": kept, "known": known, "process": processed, "process a batch": batch} {
		if !errors.Is(err, sqlite.ErrRecovering) || !errors.Is(err, holdfast.ErrUnavailable) {
			t.Errorf("%s: got %v, want ErrRecovering", what, err)
		}
	}
	if d := db.Damage(); !db.Recovering() || len(d) != 1 || d[0].Done {
		t.Errorf("reported %v", d)
	}
	if n := db.Counts().Pending; n == 0 {
		t.Error("no message is there yet")
	}
	close(hold)
	waittest.Until(t, "the salvage has ended", func() bool { return !db.Recovering() })
	p.set(nil, nil)
	if v := s.examine(t, db); v.lost+v.undecodable+v.again+v.keptLost+v.unsent > 0 {
		t.Errorf("after it: %+v", v)
	}
}
