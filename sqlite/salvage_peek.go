package sqlite

import (
	"errors"

	lib "modernc.org/sqlite/lib"
)

// peekAt checks the versions of SQLite and of the file with this name.
func (db *DB) peekAt(name string) error {
	dc, err := db.opts.connect(name)
	if err != nil {
		return err
	}
	c := &conn{&direct{dc: dc}}
	err = checkVersions(c)
	if err == nil {
		err = db.checkMoved(c)
	}
	return errors.Join(err, c.finalize(), dc.Close())
}

// mustRollBack reports whether a transaction must be undone before anything can be read. That needs
// a connection that may write. A file of this package is in that state if the power was cut, or the
// process died, while the file was made: before it had a write-ahead log.
func mustRollBack(err error) bool {
	e, ok := errors.AsType[coded](err)
	return ok && e.Code() == lib.SQLITE_READONLY_ROLLBACK
}
