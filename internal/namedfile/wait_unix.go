//go:build unix

package namedfile

import "syscall"

// doNotWait makes opening a pipe without a writer return at once.
const doNotWait = syscall.O_NONBLOCK
