//go:build unix

package demo

import (
	"os"

	"golang.org/x/sys/unix"
)

// CanRedraw reports whether f is a terminal that is wide enough to draw on.
func CanRedraw(f *os.File) bool {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil && size.Col >= Width
}
