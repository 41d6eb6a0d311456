//go:build unix && !linux

package sqlite

import "os"

func isLocked(f *os.File) (bool, error) { return tryShared(f) }
