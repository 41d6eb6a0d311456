//go:build darwin || freebsd

package doctor

import (
	"fmt"

	"golang.org/x/sys/unix"
)

func diskFound(dir string) DiskFound {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return DiskFound{Err: fmt.Errorf("look at the file system: %w", err)}
	}
	kind := unix.ByteSliceToString(s.Fstypename[:])
	if kind == "smbfs" {
		kind = "smb"
	}
	return DiskFound{
		Kind: kind,
		Free: int64(s.Bavail) * int64(s.Bsize), Total: int64(s.Blocks) * int64(s.Bsize),
		Files: int64(s.Ffree), Inodes: int64(s.Files),
	}
}
