//go:build unix

package sqlite

import (
	"errors"
	"os"
	"syscall"
)

// syncDir makes new names in a folder survive a power cut.
func syncDir(folder string) error {
	d, err := os.Open(folder) //nolint:gosec // a folder that the caller named
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// giveTo gives a file the owner of another file. It matters when root works on the files of a node
// that runs as another user.
func giveTo(path string, like os.FileInfo) error {
	owner, ok := like.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	return os.Chown(path, int(owner.Uid), int(owner.Gid))
}
