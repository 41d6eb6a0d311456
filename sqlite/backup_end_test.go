package sqlite_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// cutOff runs a backup in the midst of which f is called, and wants only the
// lock to be left in its folder.
func cutOff(ctx context.Context, t *testing.T, f func(db *sqlite.DB)) (*sqlite.DB, error) {
	t.Helper()
	var db *sqlite.DB
	var once sync.Once
	db = fresh(t, sqlite.Options{}.Copying(nil, func(point string) {
		if point == "step" {
			once.Do(func() { f(db) })
		}
	}))
	fill(t, db, "m", 600)
	dir := t.TempDir()
	err := db.Backup(ctx, filepath.Join(dir, "copy.db"))
	if left := names(t, dir); !slices.Equal(left, []string{".holdfast-backup.lock"}) {
		t.Errorf("the folder has %q", left)
	}
	return db, err
}

func TestOI14ABackupThatIsCancelledEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	db, err := cutOff(ctx, t, func(*sqlite.DB) { cancel() })
	defer shut(t, db)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if err := db.Backup(t.Context(), filepath.Join(t.TempDir(), "next.db")); err != nil {
		t.Errorf("the next one: %v", err)
	}
}

func TestOI14AStoreThatClosesEndsItsBackup(t *testing.T) {
	t.Parallel()
	closed := make(chan error, 1)
	db, err := cutOff(t.Context(), t, func(db *sqlite.DB) { go func() { closed <- db.Close() }() })
	if !errors.Is(err, holdfast.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
	if err := <-closed; err != nil {
		t.Errorf("close: %v", err)
	}
	if err := db.Backup(t.Context(), filepath.Join(t.TempDir(), "next.db")); !errors.Is(err, holdfast.ErrClosed) {
		t.Errorf("afterwards: got %v, want ErrClosed", err)
	}
}

// The store loses its file to another process in the midst of it.
func TestOI14AStoreThatStopsEndsItsBackup(t *testing.T) {
	t.Parallel()
	db, err := cutOff(t.Context(), t, func(db *sqlite.DB) {
		run(t, raw(t, db.Path()), "UPDATE hf_meta SET value = value + 1 WHERE key = 'epoch'")
		if _, err := db.Enqueue(context.Background(), message("lost")); err == nil {
			t.Error("accepted into a file of another")
		}
	})
	if !errors.Is(err, holdfast.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
	shut(t, db)
}

type failing struct {
	sqlite.PageCopier
	err error
}

func (f failing) Step(int32) (bool, error) { return false, f.err }

// What a backup meets is no fault of the store's own disk.
func TestOI14AFaultOfABackupIsItsOwn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault, want error
		text        string
	}{"full": {errFull, holdfast.ErrDiskFull, "the copy needs "}, "broken": {errIOSync, errIOSync, ""}} {
		fault, want := c.fault, c.want
		db := fresh(t, sqlite.Options{}.Copying(func(k sqlite.PageCopier) sqlite.PageCopier { return failing{k, fault} }, nil))
		enqueue(t, db, message("m"))
		dir := t.TempDir()
		err := db.Backup(t.Context(), filepath.Join(dir, "copy.db"))
		if !errors.Is(err, want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v, want %v with %q", name, err, want, c.text)
		}
		if db.Full() || db.Err() != nil {
			t.Errorf("the store blames its own disk: full %t, %v", db.Full(), db.Err())
		}
		if left := names(t, dir); len(left) != 1 {
			t.Errorf("the folder has %q", left)
		}
		enqueue(t, db, message("n"))
		shut(t, db)
	}
}

// A step that finds a lock is taken again.
func TestOI14ALockHoldsABackupUpOnlyForAWhile(t *testing.T) {
	t.Parallel()
	busy := 3
	db := fresh(t, sqlite.Options{}.Copying(func(k sqlite.PageCopier) sqlite.PageCopier { return locked{k, &busy} }, nil))
	defer shut(t, db)
	enqueue(t, db, message("m"))
	to := filepath.Join(t.TempDir(), "copy.db")
	if err := db.Backup(t.Context(), to); err != nil || busy != 0 {
		t.Fatalf("%v, %d", err, busy)
	}
	if len(sound(t, to)) != 1 {
		t.Error("the copy is not whole")
	}
}

type locked struct {
	sqlite.PageCopier
	times *int
}

func (l locked) Step(pages int32) (bool, error) {
	if *l.times > 0 {
		*l.times--
		return false, errBusy
	}
	return l.PageCopier.Step(pages)
}

// A disk that has too little room is told before anything is written.
func TestOI14ABackupLeavesRoom(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		t.Skip("needs root on Linux, to mount a small disk")
	}
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=17m", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("mount is not allowed here: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	db := fresh(t, sqlite.Options{})
	defer shut(t, db)
	fill(t, db, "m", 600)
	err := db.Backup(t.Context(), filepath.Join(dir, "copy.db"))
	if !errors.Is(err, holdfast.ErrDiskFull) || !strings.Contains(err.Error(), "leaves 16.0 MiB for others, and 17.0 MiB are free in "+dir) {
		t.Errorf("got %v", err)
	}
	if left := names(t, dir); len(left) != 1 {
		t.Errorf("the folder has %q", left)
	}
}
