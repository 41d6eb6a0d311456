package sqlite

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

var errLocked = errors.New("locked")

// noLink has no counterpart here: users have no right to make symbolic links.
const noLink = 0

func isLink(error) bool { return false }

// lockOffset is far behind the note in the file: a lock on Windows keeps others from reading the
// bytes that it covers.
const lockOffset = 1 << 30

// lockFile takes an exclusive lock, or returns errLocked at once.
func lockFile(f *os.File) error {
	at := &windows.Overlapped{Offset: lockOffset}
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return errLocked
	}
	return err
}

// unlockFile releases the lock.
func unlockFile(f *os.File) error {
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, &windows.Overlapped{Offset: lockOffset})
}

// isReadOnlyDisk reports whether the whole disk is read-only.
func isReadOnlyDisk(err error) bool { return errors.Is(err, windows.ERROR_WRITE_PROTECT) }

// syncFolder does nothing: NTFS journals names by itself.
func syncFolder(string) error { return nil }

// namesOf returns how many names a file has.
func namesOf(path string) (uint64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	var info windows.ByHandleFileInformation
	err = windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &info)
	return uint64(info.NumberOfLinks), errors.Join(err, f.Close())
}
