//go:build unix

package sqlite

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

var errLocked = errors.New("locked")

// noLink refuses to open a file whose name is a symbolic link. Otherwise the note of a lock file
// could go into a file that another user has chosen.
const noLink = unix.O_NOFOLLOW

// isLink reports whether opening a file failed because its name is a symbolic link.
func isLink(err error) bool { return errors.Is(err, unix.ELOOP) }

// lockFile takes an exclusive lock, or returns errLocked at once.
func lockFile(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errLocked
	}
	return err
}

// unlockFile releases the lock explicitly: a child process between fork and exec still holds the
// file, and closing it here would not be the last close.
func unlockFile(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_UN) }

// isReadOnlyDisk reports whether the whole disk is read-only.
func isReadOnlyDisk(err error) bool { return errors.Is(err, unix.EROFS) }

// syncFolder makes the names in the folder of this file durable.
func syncFolder(name string) error {
	d, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// namesOf returns how many names a file has.
func namesOf(path string) (uint64, error) {
	var s unix.Stat_t
	err := unix.Stat(path, &s)
	return uint64(s.Nlink), err //nolint:unconvert // its type differs between systems
}
