package sqlite_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast/sqlite"
)

// F1-10: payloads were readable for every user of the machine.
func TestOthersMayNotReadADatabaseOfOurs(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no modes of files")
	}
	path := filepath.Join(t.TempDir(), "holdfast.db")
	open := func(want os.FileMode) string {
		var log bytes.Buffer
		db, err := sqlite.Open(t.Context(), path, sqlite.Options{Source: "shop", Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
			info, err := os.Stat(path + suffix)
			if err != nil {
				t.Fatal(err)
			}
			if got := info.Mode().Perm(); got&^want != 0 {
				t.Errorf("%q has mode %v, want %v at most", suffix, got, want)
			}
		}
		return log.String()
	}
	if got := open(0o640); strings.Contains(got, "may read the database") {
		t.Errorf("a new database is warned of: %s", got)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := open(0o644); !strings.Contains(got, "may read the database") || !strings.Contains(got, "chmod 0640") {
		t.Errorf("got %q, want a warning that names the way out", got)
	}
}
