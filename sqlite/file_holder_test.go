//go:build unix

package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/sqlite"
)

func TestTheHolderOfAFileIsSeenFromOutside(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	if _, err := sqlite.HolderOf(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want os.ErrNotExist", err)
	}
	db := open(t, path, sqlite.Options{})
	host, _ := os.Hostname()
	h, err := sqlite.HolderOf(path)
	if err != nil || !h.Held || h.PID != os.Getpid() || h.Host != host || time.Since(h.Since) > time.Minute {
		t.Errorf("got %+v, %v; want this process", h, err)
	}
	if held, err := sqlite.TryShared(path); err != nil || !held {
		t.Errorf("without the list of locks: got %t, %v; want held", held, err)
	}
	shut(t, db)
	if h, err := sqlite.HolderOf(path); err != nil || h.Held || h.PID != os.Getpid() {
		t.Errorf("got %+v, %v; want the last holder, which has it no more", h, err)
	}
}

// Who looks whether a node runs must not be why it does not start.
func TestALookAtTheLockDoesNotRefuseAnOwner(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	shut(t, open(t, path, sqlite.Options{}))
	give, err := sqlite.HoldShared(path)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(10*time.Millisecond, give)
	shut(t, open(t, path, sqlite.Options{}))
}
