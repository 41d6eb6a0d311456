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

// Holder is who owns a database, as far as it can be seen from outside.
type Holder struct {
	Held  bool // a process owns it now
	PID   int  // of the last owner that left its name; 0: none did
	Host  string
	Since time.Time
}

// HolderOf says who owns the database at path, and takes nothing. Where the
// system does not list its locks it tries whether a lock could be had, which
// own does not mind. os.ErrNotExist says that nobody ever owned it.
func HolderOf(path string) (Holder, error) {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		path = to
	}
	f, err := os.Open(path + ".lock") //nolint:gosec // beside the database that was named
	if err != nil {
		return Holder{}, fmt.Errorf("look who owns %s: %w", path, err)
	}
	defer func() { _ = f.Close() }() // it was only read
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
	since, _ := time.Parse(time.RFC3339, fields[2]) // zero: not known
	return Holder{PID: pid, Host: fields[1], Since: since}
}

// lockPatiently is lockFile for an owner-to-be. Somebody who looks at the lock
// may have it for an instant; a real owner has it for longer.
func lockPatiently(f *os.File) error {
	for range 3 {
		if err := lockFile(f); !errors.Is(err, errLocked) {
			return err
		}
		<-time.After(20 * time.Millisecond)
	}
	return lockFile(f)
}
