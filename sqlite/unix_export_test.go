//go:build unix

package sqlite

import (
	"os"

	"golang.org/x/sys/unix"
)

// TryShared looks at the lock of the database at path as a system does that
// lists no locks.
func TryShared(path string) (held bool, err error) {
	f, err := os.Open(path + ".lock")
	if err != nil {
		return false, err
	}
	defer f.Close()
	return tryShared(f)
}

// HoldShared has the lock as one who looks has it for an instant.
func HoldShared(path string) (give func(), err error) {
	f, err := os.Open(path + ".lock")
	if err != nil {
		return nil, err
	}
	return func() { f.Close() }, unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
}
