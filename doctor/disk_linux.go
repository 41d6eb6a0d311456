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
	return DiskFound{
		Kind: kindOf(uint32(s.Type)),
		Free: int64(s.Bavail) * s.Bsize, Total: int64(s.Blocks) * s.Bsize,
		Files: int64(s.Ffree), Inodes: int64(s.Files),
	}
}

// kindOf names the usual kinds of file systems, and those that need a remark.
func kindOf(magic uint32) string {
	switch magic {
	case unix.TMPFS_MAGIC:
		return "tmpfs"
	case unix.RAMFS_MAGIC:
		return "ramfs"
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlay"
	case 0x61756673:
		return "aufs"
	case unix.NFS_SUPER_MAGIC:
		return "nfs"
	case 0xff534d42, unix.SMB2_SUPER_MAGIC:
		return "cifs"
	case unix.SMB_SUPER_MAGIC:
		return "smb"
	case unix.V9FS_MAGIC:
		return "9p"
	case unix.FUSE_SUPER_MAGIC:
		return "fuse"
	case unix.EXT4_SUPER_MAGIC:
		return "ext4"
	case unix.XFS_SUPER_MAGIC:
		return "xfs"
	case unix.BTRFS_SUPER_MAGIC:
		return "btrfs"
	case 0x2fc12fc1:
		return "zfs"
	case unix.F2FS_SUPER_MAGIC:
		return "f2fs"
	}
	return fmt.Sprintf("0x%x", magic)
}
