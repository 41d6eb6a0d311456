//go:build unix

package namedfile

import "syscall"

// doNotWait lets the opening of a pipe that nobody writes return at once.
const doNotWait = syscall.O_NONBLOCK
