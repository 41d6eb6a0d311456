//go:build unix

package sqlite

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

var errLocked = errors.New("locked")

// noLink has a file opened only if its name is no symbolic link: what we write
// into a lock file would else go into a file that another user has chosen.
const noLink = unix.O_NOFOLLOW

// isLink says whether an error of opening a file says that.
func isLink(err error) bool { return errors.Is(err, unix.ELOOP) }

// lockFile takes an exclusive lock or returns errLocked at once.
func lockFile(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errLocked
	}
	return err
}

// unlockFile gives the lock up by name: a child process between fork and exec
// still holds the file, and closing it here would not be the last close.
func unlockFile(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_UN) }

// isReadOnlyDisk says whether the disk as a whole takes no writes.
func isReadOnlyDisk(err error) bool { return errors.Is(err, unix.EROFS) }

// syncFolder makes the names in the folder of this file durable.
func syncFolder(name string) error {
	d, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// namesOf is how many names a file has.
func namesOf(path string) (uint64, error) {
	var s unix.Stat_t
	err := unix.Stat(path, &s)
	return uint64(s.Nlink), err //nolint:unconvert // its type is not the same everywhere
}
