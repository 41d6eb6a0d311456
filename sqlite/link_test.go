//go:build unix

package sqlite_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast/sqlite"
)

// F1-20: who may write into the folder must not have a file of his choice
// written through the name of a lock.
func TestALockThatIsALinkIsNotFollowed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, victim := filepath.Join(dir, "holdfast.db"), filepath.Join(dir, "victim")
	db := open(t, path, sqlite.Options{})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	const text = "somebody else's, and longer than what a lock file holds: it would be cut\n"
	if err := os.WriteFile(victim, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path + ".lock"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, path+".lock"); err != nil {
		t.Fatal(err)
	}
	refused := func(what string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "is a symbolic link") {
			t.Errorf("%s: got %v", what, err)
		}
		if got, err := os.ReadFile(victim); err != nil || string(got) != text {
			t.Errorf("%s: the file now holds %q, %v", what, got, err)
		}
	}
	_, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	refused("open", err)
	refused("backup", sqlite.BackupFile(t.Context(), path, filepath.Join(dir, "copy.db")))
}
