//go:build !linux

package sqlite

import "os"

// allocate makes the file's bytes from and on, so many, really stand on the
// disk, and not only in its size.
func allocate(f *os.File, from, bytes int64) error { return writeZeros(f, from, bytes) }
