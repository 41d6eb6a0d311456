//go:build !linux

package sqlite

import "os"

// allocate makes bytes of the file, starting at from, really occupy the disk. A larger size alone
// would not.
func allocate(f *os.File, from, bytes int64) error { return writeZeros(f, from, bytes) }
