package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// fill enqueues n messages with payloads of some KiB.
func fill(t testing.TB, db *sqlite.DB, prefix string, n int) {
	t.Helper()
	var batch []holdfast.Message
	for i := range n {
		m := message(holdfast.ID(fmt.Sprint(prefix, i)))
		m.Payload = slices.Repeat([]byte{byte(i)}, 4000)
		if batch = append(batch, m); len(batch) == 200 || i == n-1 {
			enqueue(t, db, batch...)
			batch = nil
		}
	}
}

// sound opens a copy and returns its messages' states.
func sound(t testing.TB, path string) map[holdfast.ID]holdfast.State {
	t.Helper()
	db := open(t, path, sqlite.Options{})
	defer shut(t, db)
	audit(t, db)
	states := map[holdfast.ID]holdfast.State{}
	rows, err := db.SQL(t.Context(), "SELECT id, state FROM hf_message")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		states[holdfast.ID(fmt.Sprint(r[0]))] = holdfast.State(r[1].(int64))
	}
	return states
}

func names(t testing.TB, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// OI-14: a copy is made while writers run at full speed. It is consistent, has
// what was acknowledged before the call, ends, and the writers hardly wait.
func TestOI14BackupUnderLoad(t *testing.T) {
	t.Parallel()
	var restarts, steps atomic.Int64
	db := fresh(t, sqlite.Options{}.Copying(func(k sqlite.PageCopier) sqlite.PageCopier {
		return &watched{PageCopier: k, steps: &steps, restarts: &restarts}
	}, nil))
	defer shut(t, db)
	fill(t, db, "before", 2000) // over 2,000 pages
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var worst atomic.Int64
	var during atomic.Int64
	var writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				m := message(holdfast.ID(fmt.Sprint("during", w, "-", i)))
				m.Payload = make([]byte, 500)
				began := time.Now()
				if _, err := db.Enqueue(context.Background(), m); err != nil {
					t.Error(err)
					return
				}
				during.Add(1)
				for took := int64(time.Since(began)); ; {
					if old := worst.Load(); took <= old || worst.CompareAndSwap(old, took) {
						break
					}
				}
			}
		})
	}
	waittest.Until(t, "100 are enqueued", func() bool { return during.Load() >= 100 })
	to := filepath.Join(t.TempDir(), "copy.db")
	had := during.Load()
	began := time.Now()
	if err := db.Backup(t.Context(), to); err != nil {
		t.Fatal(err)
	}
	took, made := time.Since(began), during.Load()-had
	stop()
	writers.Wait()
	t.Logf("%d steps in %s, %d restarts, %d messages meanwhile, longest wait %s", steps.Load(), took, restarts.Load(), made, time.Duration(worst.Load()))
	if restarts.Load() > 0 {
		t.Errorf("the backup began again %d times: commits of its own connection must not do that", restarts.Load())
	}
	if wait := time.Duration(worst.Load()); wait > 2*time.Second {
		t.Errorf("a writer waited for %s", wait)
	}
	if steps.Load() < 6 {
		t.Errorf("%d steps: the copy is made in too few", steps.Load())
	}
	if left := names(t, filepath.Dir(to)); !slices.Equal(left, []string{".holdfast-backup.lock", "copy.db"}) {
		t.Errorf("the folder has %q", left)
	}
	states := sound(t, to)
	for i := range 2000 {
		if _, ok := states[holdfast.ID(fmt.Sprint("before", i))]; !ok {
			t.Fatalf("before%d is missing", i)
		}
	}
	if int64(len(states)) < 2000+had || int64(len(states)) > 2000+during.Load() {
		t.Errorf("the copy has %d messages; %d were acknowledged before, %d until the end", len(states), 2000+had, 2000+during.Load())
	}
}

// watched counts steps, and those that began again.
type watched struct {
	sqlite.PageCopier
	steps, restarts *atomic.Int64
	done            int
}

func (w *watched) Step(pages int32) (bool, error) {
	more, err := w.PageCopier.Step(pages)
	w.steps.Add(1)
	done := w.PageCount() - w.Remaining()
	if more && done <= w.done {
		w.restarts.Add(1)
	}
	w.done = done
	return more, err
}

var errNo = errors.New("no")

// A transaction that is undone makes SQLite begin again; a backup of a node
// whose handlers fail all the time ends nevertheless.
func TestOI14BackupEndsAlthoughTransactionsAreUndone(t *testing.T) {
	t.Parallel()
	var restarts, steps atomic.Int64
	db := fresh(t, sqlite.Options{}.Copying(func(k sqlite.PageCopier) sqlite.PageCopier {
		return &watched{PageCopier: k, steps: &steps, restarts: &restarts}
	}, nil))
	defer shut(t, db)
	fill(t, db, "m", 2000)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var failing sync.WaitGroup
	failing.Go(func() {
		for ctx.Err() == nil {
			_, err := db.Process(context.Background(), holdfast.Message{ID: holdfast.NewID(), Source: "s", Endpoint: "E"}, time.Hour,
				func(context.Context, *sqlite.Tx, holdfast.Message) ([]byte, error) { return nil, errNo })
			if !errors.Is(err, errNo) {
				t.Errorf("got %v, want the handler's own error", err)
			}
		}
	})
	to := filepath.Join(t.TempDir(), "copy.db")
	if err := db.Backup(t.Context(), to); err != nil {
		t.Error(err)
	}
	stop()
	failing.Wait()
	t.Logf("%d steps, %d restarts", steps.Load(), restarts.Load())
	if restarts.Load() == 0 {
		t.Error("nothing began again: the test proves nothing")
	}
	if n := len(sound(t, to)); n != 2000 {
		t.Errorf("the copy has %d messages", n)
	}
}

func TestOI14WhatStandsInTheWayOfABackup(t *testing.T) {
	t.Parallel()
	db := fresh(t, sqlite.Options{})
	defer shut(t, db)
	enqueue(t, db, message("m"))
	dir := t.TempDir()
	taken := filepath.Join(dir, "taken.db")
	if err := os.WriteFile(taken, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		path string
		want error
	}{
		"a file is there":  {taken, fs.ErrExist},
		"no folder":        {filepath.Join(dir, "none", "x.db"), fs.ErrNotExist},
		"a file as folder": {filepath.Join(taken, "x.db"), fs.ErrInvalid},
		"the database":     {db.Path(), fs.ErrExist},
	} {
		err := db.Backup(t.Context(), c.path)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.path) {
			t.Errorf("%s: got %v, want %v with the path", name, err, c.want)
		}
	}
	if got := contents(t, taken)[0]; string(got) != "mine" {
		t.Errorf("the file that was there is now %q", got)
	}
	if left := names(t, dir); !slices.Equal(left, []string{"taken.db"}) {
		t.Errorf("the folder has %q", left)
	}
	err := db.Do(t.Context(), func(ctx context.Context, _ *sqlite.Tx) error {
		return db.Backup(ctx, filepath.Join(dir, "nested.db"))
	})
	if !errors.Is(err, holdfast.ErrNested) {
		t.Errorf("inside a transaction: got %v, want ErrNested", err)
	}
}

// A driver that does not copy, as of a caller's database: it is the caller's.
func TestOI14ADriverThatDoesNotCopy(t *testing.T) {
	t.Parallel()
	p := &tap{}
	db := fresh(t, sqlite.Options{}.With(p.wrap)) // hides what the driver has besides
	defer shut(t, db)
	dir := t.TempDir()
	err := db.Backup(t.Context(), filepath.Join(dir, "x.db"))
	if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "back that database up by its own means") {
		t.Errorf("got %v", err)
	}
	if left := names(t, dir); len(left) != 1 {
		t.Errorf("the folder has %q", left)
	}
}

func TestOI14ACallersDatabaseIsTheCallersToBackUp(t *testing.T) {
	t.Parallel()
	handle, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "business.db")+
		"?_pragma=busy_timeout(5000)&_pragma=journal_mode(wal)&_pragma=synchronous(full)&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = handle.Close() })
	db, err := sqlite.Attach(t.Context(), handle, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, db)
	to := filepath.Join(t.TempDir(), "copy.db")
	if err := db.Backup(t.Context(), to); !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "its caller") {
		t.Errorf("backup: got %v", err)
	}
	if _, err := db.ChangedSince(t.Context(), to); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("changed: got %v", err)
	}
}
