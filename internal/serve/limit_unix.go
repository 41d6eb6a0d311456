//go:build unix

package serve

import "golang.org/x/sys/unix"

// descriptors returns how many files the process may have open; 0: unknown.
func descriptors() uint64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return limit.Cur
}
