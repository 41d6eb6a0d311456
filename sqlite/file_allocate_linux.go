package sqlite

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// allocate makes bytes of the file, starting at from, really occupy the disk. A larger size alone
// would not.
func allocate(f *os.File, from, bytes int64) error {
	for {
		err := unix.Fallocate(int(f.Fd()), 0, from, bytes)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
			return writeZeros(f, from, bytes)
		default:
			return err
		}
	}
}
