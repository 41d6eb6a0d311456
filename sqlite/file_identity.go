package sqlite

import (
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"os"
	"strings"
)

// metaPlace is where the file stood when it was last opened: its number in its
// file system, and when it came into being there. The number of the device is no
// part of it, because that changes with the order in which disks are found.
const metaPlace = "place"

// errGone says that what we write to is not what stands in the folder.
var errGone = errors.New("the database file was deleted, moved or replaced while it was in use")

var errCopy = fmt.Errorf("%w: the original was running, or had not stopped cleanly, when this copy of it was made, and a node on each would deliver the same messages; "+
	"stop the original and copy again, or make this one a node of its own with: holdfast restore", ErrCopied)

// checkPlace refuses a copy that was made while the original was in use: both
// would deliver what waits in it. A file that was closed cleanly may be copied
// and moved.
func (db *DB) checkPlace(c *conn, clean bool) error {
	was, err := c.metaText(metaPlace)
	if err != nil {
		return err
	}
	incarnation, err := c.metaText(metaIncarnation)
	if err != nil {
		return err
	}
	number, born, ok := placeOf(db.path)
	if !ok {
		return nil // this system does not tell
	}
	now := placeNote(fmt.Sprint(number), fmt.Sprint(born), incarnation)
	if moved(was, now, incarnation) {
		switch {
		case clean:
		case db.opts.Adopt:
			db.log.Warn("a copy that was made while the file was in use is taken over", slog.String("path", db.path))
		default:
			return errCopy
		}
	}
	_, err = c.exec(setMeta, metaPlace, now)
	return err
}

// placeNote ends with a checksum, against damage, which covers the incarnation:
// a restore starts a new one, and then the note means nothing.
func placeNote(number, born, incarnation string) string {
	return fmt.Sprintf("%s %s %08x", number, born, crc32.ChecksumIEEE([]byte(number+" "+born+" "+incarnation)))
}

// moved says whether both marks of a place have changed. One alone may: some
// file systems number their files anew with each mount.
func moved(was, now, incarnation string) bool {
	w, n := strings.Fields(was), strings.Fields(now)
	if len(w) != 3 || len(n) != 3 || was != placeNote(w[0], w[1], incarnation) {
		return false // none was noted, or it is damaged
	}
	return w[0] != n[0] && w[1] != n[1] && w[1] != "0" && n[1] != "0"
}

// remember notes which files the store writes to.
func (db *DB) remember() {
	db.files = nil
	for _, side := range []string{"", "-wal"} {
		if info, err := os.Stat(db.path + side); err == nil {
			db.files = append(db.files, openedFile{db.path + side, info})
		}
	}
}

type openedFile struct {
	path string
	info os.FileInfo
}

// present fails when a file of the store does not stand where it stood: what
// is written then goes nowhere, and must not be acknowledged.
func (db *DB) present() error {
	for _, f := range db.files {
		info, err := os.Stat(f.path)
		if errors.Is(err, os.ErrNotExist) || err == nil && !os.SameFile(info, f.info) {
			return fmt.Errorf("%w: %s; what was accepted before is gone with it, unless it was moved and is put back", errGone, f.path)
		}
	}
	return nil
}

// Present stops the store when one of its files has been deleted, moved or
// replaced. Every commit and every claim asks by itself.
func (db *DB) Present() error {
	err := db.present()
	if err != nil {
		db.writer.stop(err)
		return db.writer.stopped()
	}
	return nil
}
