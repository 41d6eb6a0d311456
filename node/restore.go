package node

import (
	"context"
	"path/filepath"

	"github.com/holdfast-mq/holdfast/sqlite"
)

// What Backup and Restore refuse, for a caller who branches on it; a file or
// folder that is not there is fs.ErrNotExist.
var (
	ErrRunning = sqlite.ErrOwned   // a node has the data folder
	ErrNewer   = sqlite.ErrNewer   // the file is of a newer release
	ErrDamaged = sqlite.ErrDamaged // the file is not sound
	ErrForeign = sqlite.ErrForeign // the file is not ours
)

// database is the file of a node in its data folder.
func database(data string) string { return filepath.Join(data, "holdfast.db") }

// Backup copies the database of a node that does not run into a folder, as a
// running node does it by itself.
func Backup(ctx context.Context, data, folder string) (path string, size int64, err error) {
	folder, err = filepath.Abs(folder)
	if err != nil {
		return "", 0, err
	}
	c, err := backUp(ctx, func(ctx context.Context, path string) error { return sqlite.BackupFile(ctx, database(data), path) }, folder)
	return c.path, c.size, err
}

// Restore puts a backup in the place of the database in a data folder, and
// keeps what was there under another name.
func Restore(ctx context.Context, file, data string) (sqlite.Restored, error) {
	return sqlite.Restore(ctx, file, database(data))
}
