package node

import (
	"context"
	"path/filepath"

	"github.com/holdfast-mq/holdfast/sqlite"
)

// Backup copies the database of a node that does not run into a folder, as a running node does by itself.
func Backup(ctx context.Context, data, folder string) (path string, size int64, err error) {
	folder, err = filepath.Abs(folder)
	if err != nil {
		return "", 0, err
	}
	c, err := backUp(ctx, func(ctx context.Context, path string) error { return sqlite.BackupFile(ctx, database(data), path) }, folder)
	return c.path, c.size, err
}

// BrokenError names the rows of a backup that differ from what was accepted.
type BrokenError = sqlite.BrokenError

// Restore puts a backup in the place of the database in a data folder. It keeps the old database under
// another name. If rows of the backup differ from what was accepted, the error is a BrokenError, unless
// broken is true.
func Restore(ctx context.Context, file, data string, broken bool) (sqlite.Restored, error) {
	return sqlite.Restore(ctx, file, database(data), sqlite.RestoreOptions{Broken: broken})
}
