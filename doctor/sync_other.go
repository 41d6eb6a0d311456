//go:build !linux

package doctor

import "os"

func syncData(f *os.File) error { return f.Sync() }
