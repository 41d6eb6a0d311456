//go:build !linux && !darwin && !freebsd && !windows

package sqlite

import "errors"

// freeBytes returns how much more a process may write to a folder's disk.
func freeBytes(string) (int64, error) { return 0, errors.ErrUnsupported }
