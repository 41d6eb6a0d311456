//go:build unix

package doctor

import (
	"errors"

	"golang.org/x/sys/unix"
)

// isAlive asks with the signal that does nothing.
func isAlive(pid int) bool { return !errors.Is(unix.Kill(pid, 0), unix.ESRCH) }
