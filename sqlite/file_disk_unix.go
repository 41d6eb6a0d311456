//go:build unix

package sqlite

import (
	"errors"

	"golang.org/x/sys/unix"
)

// noRoom reports whether an error of the system means that the disk is full or a quota is used up.
func noRoom(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }
