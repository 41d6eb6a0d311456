//go:build unix

package doctor

import (
	"errors"

	"golang.org/x/sys/unix"
)

// isAlive sends the process signal 0, which has no effect.
func isAlive(pid int) bool { return !errors.Is(unix.Kill(pid, 0), unix.ESRCH) }
