package sqlite

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

func isLocked(f *os.File) (bool, error) {
	at := &windows.Overlapped{Offset: lockOffset}
	switch err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, at); {
	case errors.Is(err, windows.ERROR_LOCK_VIOLATION):
		return true, nil
	case err != nil:
		return false, err
	}
	return false, unlockFile(f)
}
