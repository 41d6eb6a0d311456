//go:build linux || darwin || freebsd

package sqlite

import "golang.org/x/sys/unix"

// freeBytes returns how much more a process without privileges may write to a folder's disk.
func freeBytes(folder string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return 0, err
	}
	// The types differ from system to system.
	return max(int64(s.Bavail), 0) * int64(s.Bsize), nil //nolint:unconvert // they are int64 here
}
