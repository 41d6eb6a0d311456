//go:build unix

package sqlite

import (
	"errors"

	"golang.org/x/sys/unix"
)

// noRoom says whether an error of the system means a full disk, or a quota
// that is used up.
func noRoom(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }
