package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Holder describes the owner of a database, as far as it can be seen from outside.
type Holder struct {
	Held  bool // a process owns it now
	PID   int  // of the last owner that left its name; 0: none has
	Host  string
	Since time.Time
}

// HolderOf returns who owns the database at path, and takes no ownership. On systems that do not
// list their locks it tries for an instant to lock the file; own tolerates that. os.ErrNotExist
// means that nobody has ever owned the database.
func HolderOf(path string) (Holder, error) {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		path = to
	}
	f, err := os.Open(path + ".lock") //nolint:gosec // beside the database that the caller named
	if err != nil {
		return Holder{}, fmt.Errorf("look who owns %s: %w", path, err)
	}
	defer func() { _ = f.Close() }() // the file was only read
	note := make([]byte, 512)
	n, err := f.ReadAt(note, 0)
	if n == 0 && err != nil {
		note = nil
	}
	h := readHolder(string(note[:n]))
	if h.Held, err = isLocked(f); err != nil {
		return h, fmt.Errorf("look who owns %s: %w", path, err)
	}
	return h, nil
}

func readHolder(note string) Holder {
	note, _, _ = strings.Cut(note, "\n")
	fields := strings.Fields(note)
	if len(fields) != 3 {
		return Holder{}
	}
	pid, err := strconv.Atoi(fields[0])
	if err != nil || pid < 0 {
		pid = 0
	}
	since, _ := time.Parse(time.RFC3339, fields[2]) // zero: unknown
	return Holder{PID: pid, Host: fields[1], Since: since}
}

// lockPatiently is lockFile for a process that wants to become the owner. A process that only looks
// at the lock may hold it for an instant; a real owner holds it for longer.
func lockPatiently(f *os.File) error {
	for range 3 {
		if err := lockFile(f); !errors.Is(err, errLocked) {
			return err
		}
		<-time.After(20 * time.Millisecond)
	}
	return lockFile(f)
}
