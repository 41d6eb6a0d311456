package sqlite

import (
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"os"
	"strings"
)

// metaPlace is where the file was when it was last opened: its number in its file system, and the
// time of its creation there. The number of the device is not included, because it changes with the
// order in which disks are found.
const metaPlace = "place"

// errGone means that the store's files are no longer the ones in the folder.
var errGone = errors.New("the database file was deleted, moved or replaced while it was in use")

var errCopy = fmt.Errorf("%w: the original was running, or had not stopped cleanly, when this copy of it was made, and a node on each would deliver the same messages; "+
	"stop the original and copy again, or make this one a node of its own with: holdfast restore", ErrCopied)

// checkPlace refuses a copy that was made while the original was in use: both would deliver the
// messages that wait in it. A file that was closed cleanly may be copied and moved.
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

// placeNote ends with a checksum against damage. It covers the incarnation: a restore starts a new
// one, which makes the note void.
func placeNote(number, born, incarnation string) string {
	return fmt.Sprintf("%s %s %08x", number, born, crc32.ChecksumIEEE([]byte(number+" "+born+" "+incarnation)))
}

// moved reports whether both marks of a place have changed. One of them may change alone: some file
// systems number their files anew with each mount.
func moved(was, now, incarnation string) bool {
	w, n := strings.Fields(was), strings.Fields(now)
	if len(w) != 3 || len(n) != 3 || was != placeNote(w[0], w[1], incarnation) {
		return false // there is no note, or it is damaged
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

// present fails if a file of the store is no longer in its place. Data that is written then is
// lost, and must not be acknowledged.
func (db *DB) present() error {
	for _, f := range db.files {
		info, err := os.Stat(f.path)
		if errors.Is(err, os.ErrNotExist) || err == nil && !os.SameFile(info, f.info) {
			return fmt.Errorf("%w: %s; what was accepted before is gone with it, unless it was moved and is put back", errGone, f.path)
		}
	}
	return nil
}

// Present stops the store if one of its files has been deleted, moved or replaced. Every commit and
// every claim checks this too.
func (db *DB) Present() error {
	err := db.present()
	if err != nil {
		db.writer.stop(err)
		return db.writer.stopped()
	}
	return nil
}
