package sqlite

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"runtime"
)

// privateMode is the mode of a database that this package makes: others must not read payloads.
// SQLite gives its log and its shared memory the mode of the database.
const privateMode fs.FileMode = 0o640

// makePrivate makes the file of a new database, so that others cannot read it from its first byte
// on. An existing file keeps its mode, which somebody may have chosen. If everybody may read it,
// makePrivate logs that.
func (db *DB) makePrivate() error {
	f, err := os.OpenFile(db.path, os.O_RDWR|os.O_CREATE|os.O_EXCL, privateMode)
	if err == nil {
		return f.Close()
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Stat(db.path)
	if err == nil && info.Mode().Perm()&0o007 != 0 && runtime.GOOS != "windows" { // Windows has no such modes
		db.log.Warn("every user of this machine may read the database; close it with chmod 0640",
			slog.String("path", db.path), slog.String("mode", info.Mode().Perm().String()))
	}
	return nil
}
