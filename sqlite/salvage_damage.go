package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/sqlitefile"
)

// openOwned opens the file. If the file is damaged, it opens a new one and salvages the damaged one
// into it.
//
//	suspicious? ──no──► open ──► done
//	    │                └─ damaged ─┐
//	    └─yes──► note, then rename ◄─┘ ──► new file ──► salvage ──► note that it is done
//
// The note comes first, so that after a death at any point the next start goes on. A second salvage
// changes nothing.
func openOwned(ctx context.Context, path string, o Options, owner *ownership) (*DB, error) {
	if resumed, err := resumeRestore(path); err != nil {
		return nil, err
	} else if resumed {
		o.Logger.WarnContext(ctx, "finished a restore that was cut off", slog.String("path", path))
	}
	aside, err := unfinished(path, o.Logger)
	switch {
	case err != nil:
		return nil, err
	case aside != nil:
		return goOn(ctx, path, o, aside)
	}
	cause := suspicion(path, owner.opened, o.Normal)
	if cause == nil {
		db := newOwned(path, o)
		if _, err := os.Stat(path); owner.opened && errors.Is(err, os.ErrNotExist) {
			o.Logger.WarnContext(ctx, "the database file is gone; a new one is made", slog.String("path", path))
		}
		err := db.open(ctx)
		if err == nil {
			return db, nil
		}
		if cause = translate(err); !errors.Is(cause, ErrDamaged) {
			return nil, errors.Join(db.room.explain(err), db.release())
		}
		if err := setAsideAllowed(path, owner, cause); err != nil {
			return nil, errors.Join(err, db.release())
		}
		// Rename while the file is open, if the system allows that: closing the last connection
		// would merge the log into the file and delete it.
		if aside, err = begin(path, cause); err == nil {
			err = aside.rename(path)
		}
		closed := db.release()
		if aside == nil {
			return nil, errors.Join(err, closed)
		}
	} else if err := setAsideAllowed(path, owner, cause); err != nil {
		return nil, err
	} else if aside, err = begin(path, cause); err != nil {
		return nil, err
	}
	if err := aside.rename(path); err != nil {
		return nil, err
	}
	return reopen(ctx, path, o, aside)
}

// goOn goes on with an interrupted salvage. If the new file is damaged too, it begins with another:
// nothing was accepted into the damaged one.
func goOn(ctx context.Context, path string, o Options, aside *Damage) (*DB, error) {
	if err := aside.rename(path); err != nil {
		return nil, err
	}
	cause := suspicion(path, false, o.Normal)
	if cause == nil {
		db, err := reopen(ctx, path, o, aside)
		if err == nil || !errors.Is(translate(err), ErrDamaged) {
			return db, err
		}
		cause = err
	}
	o.Logger.ErrorContext(ctx, "the new file of a salvage is damaged, too: the salvage begins again", slog.String("path", path),
		slog.String("kept", aside.File+partial), slog.Any("cause", cause))
	if err := aside.again(path); err != nil {
		return nil, err
	}
	return reopen(ctx, path, o, aside)
}

// reopen opens the file that takes the place of the damaged one, and fills it.
func reopen(ctx context.Context, path string, o Options, aside *Damage) (*DB, error) {
	db := newOwned(path, o)
	db.salvaging = newSalvage(db, aside)
	db.log.ErrorContext(ctx, "the database file is damaged: set aside, and salvaged into a new one", slog.String("path", path),
		slog.String("set_aside", aside.File), slog.String("cause", aside.Cause))
	if err := aside.succeed(path); err != nil {
		return nil, errors.Join(db.room.explain(err), db.release())
	}
	if err := db.open(ctx); err != nil {
		return nil, errors.Join(db.room.explain(err), db.release())
	}
	db.lanes.mu.Lock()
	db.lanes.careful = carefulSettles // whatever has stopped the process before
	db.lanes.mu.Unlock()
	if err := db.salvaging.start(ctx); err != nil {
		db.writer.close()
		return nil, errors.Join(fmt.Errorf("salvage %s: %w", aside.File, err), db.release())
	}
	return db, nil
}

// suspicion looks at the file before SQLite does. SQLite would take some damage for the end of what
// was written, and go on without the rest. opened says that the file was in use before. lax says
// that not every commit is synced: then a power cut may leave holes in the log.
func suspicion(path string, opened, lax bool) error {
	if err := marked(path); err != nil {
		return err
	}
	if s, err := os.Stat(path + "-journal"); err == nil && s.Size() > 0 {
		return nil // the file was cut off while it was made; SQLite first undoes that
	}
	log, err := sqlitefile.ReadLog(path + "-wal")
	if err != nil {
		return nil //nolint:nilerr // an unreadable log is not a damaged one; SQLite will say what is wrong
	}
	info, err := os.Stat(path)
	absent := errors.Is(err, os.ErrNotExist)
	switch {
	case err != nil && !absent:
		return nil
	case log.Damaged() && !lax:
		return unseen(log)
	case (absent || info.Size() == 0) && log.Commits > 0:
		return fmt.Errorf("%w: it is absent or empty, and its log (-wal) is not", ErrDamaged)
	case !absent && info.Size() == 0 && opened:
		return fmt.Errorf("%w: it is empty, and had content before", ErrDamaged)
	case absent || info.Size() == 0:
		return nil
	}
	return checkHeader(path, info.Size(), log)
}

func unseen(log sqlitefile.Log) error {
	return fmt.Errorf("%w: its log (-wal) has %d commits that do not match their checksums", ErrDamaged, log.Unseen)
}

// checkLog refuses to copy a database if SQLite would see only a part of its log. The copy would
// miss the rest.
func checkLog(path string) error {
	log, err := sqlitefile.ReadLog(path + "-wal")
	if err == nil && log.Damaged() {
		err = fmt.Errorf("%w; start a node with it: that salvages all of them", unseen(log))
	}
	return err
}

// checkHeader compares the first bytes of the file with those that all files of this package have.
// They may differ only if the log restores the first page.
func checkHeader(path string, size int64, log sqlitefile.Log) error {
	f, err := os.Open(path) //nolint:gosec // the store's own file
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // the file was only read
	h := make([]byte, 100)
	if n, _ := f.ReadAt(h, 0); n < len(h) {
		return fmt.Errorf("%w: it ends within its header", ErrDamaged)
	}
	if string(h[:16]) != "SQLite format 3\x00" {
		return fmt.Errorf("%w: file is not a database", ErrDamaged)
	}
	if log.Pages > 0 {
		return nil
	}
	pages, pageSize := int64(binary.BigEndian.Uint32(h[28:])), int64(binary.BigEndian.Uint16(h[16:]))
	if pageSize == 1 {
		pageSize = 1 << 16
	}
	counted := string(h[24:28]) == string(h[92:96]) // otherwise the number of pages means nothing
	for _, fault := range []struct {
		is   bool
		text string
	}{
		{pageSize < 512 || pageSize&(pageSize-1) != 0 || counted && pages*pageSize != size && pages*sqlitefile.PageSize == size, "page size"},
		{h[18] != h[19] || h[18] != 1 && h[18] != 2, "format version"},
		{h[20] != 0 || h[21] != 64 || h[22] != 32 || h[23] != 32, "page layout"},
		{h[47] > 4 || h[59] > 3, "schema format"},
		{counted && pages*pageSize != size, "number of pages"},
	} {
		if fault.is {
			return fmt.Errorf("%w: its header has an impossible %s", ErrDamaged, fault.text)
		}
	}
	return nil
}

// setAsideAllowed refuses two kinds of files. A file that names no table of this package, and
// beside which nothing was opened before, belongs to others. In a file that also holds tables of
// others, those tables could not be salvaged and would be missed.
func setAsideAllowed(path string, owner *ownership, cause error) error {
	f, err := sqlitefile.Open(path)
	if err != nil {
		return errors.Join(cause, err)
	}
	defer f.Close() //nolint:errcheck // the file was only read
	ours, foreign := owner.opened, ""
	look := func(r sqlitefile.Row) {
		if len(r.Values) != 5 || r.Int(3) < 2 {
			return
		}
		ours = ours || isOurs(r.Text(1)) || isOurs(r.Text(2))
		// If one of the two names is damaged, the other still shows that the table is ours.
		if r.Text(0) == "table" && !isOurs(r.Text(1)) && !isOurs(r.Text(2)) {
			foreign = r.Text(1)
		}
	}
	if whole := f.Table(1, look); !whole {
		f.Orphans(func(table bool, r sqlitefile.Row) {
			if _, text := last(r).(string); text && table {
				look(r)
			}
		})
	}
	switch {
	case foreign != "":
		return fmt.Errorf("%w; it also holds the table %q, which is not of Holdfast, so it was left as it is: restore a backup, or move it away", cause, foreign)
	case !ours:
		return fmt.Errorf("%w; it was never a file of Holdfast, so it was left as it is: name another file, or move this one away", cause)
	}
	return nil
}

func isOurs(table string) bool {
	return strings.HasPrefix(table, "hf_") || strings.HasPrefix(table, "sqlite_")
}

// checkSchema compares the definitions of our tables and indexes with their state when they were
// made: damage to a definition changes what statements do.
func checkSchema(c *conn) error {
	want, err := c.meta(metaSchemaHash)
	if err != nil {
		return err
	}
	have, err := c.schemaHash()
	if err != nil || have == want {
		return err
	}
	was, err := c.meta(metaSchemaCount)
	if err != nil {
		return err
	}
	is, err := c.schemaCount()
	if err == nil && was != 0 && is != was {
		return fmt.Errorf("%w any more: another program has changed its tables whose names begin with hf_ (changes of the schema: %d, and %d at the last start); "+
			"undo that, or restore a backup", ErrForeign, is, was)
	}
	if err == nil {
		err = fmt.Errorf("%w: the definitions of its tables have changed", ErrDamaged)
	}
	return err
}

// schemaHash is a sum, because a copy may list the same definitions in another order.
func (c *conn) schemaHash() (sum int64, err error) {
	err = c.rows(queries[schemaTexts], func(v []driver.Value) error {
		h := sha256.Sum256(fmt.Appendf(nil, "%q", v))
		sum += int64(binary.BigEndian.Uint64(h[:]))
		return nil
	})
	return sum, err
}

// schemaCount returns a number that grows with each change of the schema.
func (c *conn) schemaCount() (int64, error) {
	text, err := c.pragma("PRAGMA schema_version")
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}

// markOf names the file that tells the next start of damage that was met while the database was in
// use.
func markOf(path string) string { return path + ".damaged" }

// marked returns the damage that the mark describes, or nil if there is no mark.
func marked(path string) error {
	text, err := os.ReadFile(markOf(path))
	if err != nil {
		return nil //nolint:nilerr // there is no mark, or nobody can tell
	}
	return fmt.Errorf("%w: noted while it was in use: %s", ErrDamaged, strings.TrimSpace(string(text)))
}

// damaged stops the store if SQLite says that the file is damaged. The file has what was
// acknowledged, and the next start salvages it. Going on could build on damaged data.
func (db *DB) damaged(err error) {
	if !errors.Is(err, ErrDamaged) || db.Err() != nil {
		return
	}
	if db.attached != nil { // the file is the caller's, who decides what to do with it
		db.log.Error("database damaged", slog.String("path", db.path), slog.Any("error", err))
		return
	}
	text := fmt.Sprintf("%s %s\n", time.Now().UTC().Format(time.RFC3339), err)
	if e := writeSynced(markOf(db.path), []byte(text)); e != nil {
		db.log.Error("damage not noted for the next start", slog.Any("error", e))
	}
	db.writer.stop(fmt.Errorf("%w; start again: the file will be set aside, and what can be read of it salvaged", err))
}

// noted translates an error of a reader. If the file was taken away, the reader reads another file
// or none. Then that is the error, whatever SQLite says.
func (db *DB) noted(err error) error {
	if err == nil {
		return nil
	}
	if gone := db.Present(); gone != nil {
		return gone
	}
	err = translate(err)
	db.damaged(err)
	if db.gone.Load() && !errors.Is(err, holdfast.ErrClosed) { // Close took its connection away
		err = fmt.Errorf("%w: %w", holdfast.ErrClosed, err)
	}
	return err
}
