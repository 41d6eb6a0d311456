package demo

import (
	"os"

	"golang.org/x/sys/windows"
)

// CanRedraw reports whether f is a terminal that is wide enough to draw on. It also makes the
// terminal obey the sequences for drawing.
func CanRedraw(f *os.File) bool {
	handle := windows.Handle(f.Fd())
	var mode uint32
	var info windows.ConsoleScreenBufferInfo
	if windows.GetConsoleMode(handle, &mode) != nil || windows.GetConsoleScreenBufferInfo(handle, &info) != nil {
		return false
	}
	return info.Size.X >= Width && windows.SetConsoleMode(handle, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}
