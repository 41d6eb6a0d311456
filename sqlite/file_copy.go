package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	moderncsqlite "modernc.org/sqlite"

	"github.com/holdfast-mq/holdfast"
)

// Other files in the folder of a backup.
const (
	copyLock   = ".holdfast-backup.lock"
	copyPrefix = ".holdfast-"
	copySuffix = ".part"
)

// spareRoom is how much room a copy leaves on its disk, in bytes. The node that is copied usually
// writes to the same disk.
const spareRoom = 16 << 20

// sidecars are the suffixes of a database and the files that SQLite keeps beside it. They hold what
// has not reached the database yet.
var sidecars = [...]string{"", "-wal", "-shm", "-journal"}

// copyFile is an unfinished copy. It has a temporary name until it is complete. A later copy into
// the same folder removes an abandoned one; the lock protects a copy that is still being made.
type copyFile struct {
	path, folder, temp string
	lock               *os.File
	need               int64 // bytes
	connect            func(name string) (driver.Conn, error)
	at                 func(point string)
}

// newCopyFile checks what could prevent the copy, and makes an empty file.
func newCopyFile(path string) (_ *copyFile, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	folder := filepath.Dir(path)
	f := &copyFile{
		path: path, folder: folder, temp: filepath.Join(folder, copyPrefix+filepath.Base(path)+copySuffix),
		connect: (&moderncsqlite.Driver{}).Open,
	}
	switch info, err := os.Stat(folder); {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("the folder must exist: %w", err)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", fs.ErrInvalid, err)
	case !info.IsDir():
		return nil, fmt.Errorf("%w: %s is no folder", fs.ErrInvalid, folder)
	}
	if err := f.checkFree(); err != nil {
		return nil, err
	}
	f.lock, err = os.OpenFile(filepath.Join(folder, copyLock), os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // in the folder that the caller names
	if err != nil {
		return nil, fmt.Errorf("%w: the folder cannot be written to: %w", fs.ErrPermission, err)
	}
	if err := lockFile(f.lock); err != nil {
		err = errors.Join(fmt.Errorf("lock %s: %w", f.lock.Name(), err), f.lock.Close())
		if errors.Is(err, errLocked) {
			err = fmt.Errorf("another process is writing a backup into this folder; give each node a folder of its own: %w", err)
		}
		return nil, err
	}
	if err := f.create(); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// create removes what abandoned copies have left, and makes the file with a mode that lets nobody
// else read it.
func (f *copyFile) create() error {
	entries, err := os.ReadDir(f.folder)
	if err != nil {
		return fmt.Errorf("read the folder: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), copyPrefix) && strings.Contains(e.Name(), copySuffix) && e.Type().IsRegular() {
			if err := os.Remove(filepath.Join(f.folder, e.Name())); err != nil {
				return fmt.Errorf("remove what an earlier copy has left: %w", err)
			}
		}
	}
	n, err := os.OpenFile(f.temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("%w: the folder cannot be written to: %w", fs.ErrPermission, err)
	}
	return n.Close()
}

func (f *copyFile) checkFree() error {
	switch _, err := os.Lstat(f.path); {
	case err == nil:
		return fmt.Errorf("there is a file of this name: %w", fs.ErrExist)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return nil
}

// checkRoom fails early if the disk is too full, on systems that tell.
func (f *copyFile) checkRoom() error {
	free, err := freeBytes(f.folder)
	if err == nil && free < f.need+spareRoom {
		return f.noRoom(free)
	}
	return nil
}

func (f *copyFile) noRoom(free int64) error {
	return fmt.Errorf("%w: the copy needs %s and leaves %s for others, and %s are free in %s",
		holdfast.ErrDiskFull, size(f.need), size(spareRoom), size(free), f.folder)
}

// explain returns the same error if the disk has become full meanwhile.
func (f *copyFile) explain(err error) error {
	if err = translate(err); noRoom(err) || errors.Is(err, holdfast.ErrDiskFull) {
		if free, e := freeBytes(f.folder); e == nil && !strings.Contains(err.Error(), "are free in") {
			return fmt.Errorf("%w: %w", f.noRoom(free), err)
		}
	}
	return err
}

// size formats a number of bytes for people.
func size(n int64) string {
	const kib = 1 << 10
	switch {
	case n < kib:
		return strconv.FormatInt(n, 10) + " B"
	case n < kib<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/kib)
	case n < kib<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(kib<<10))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(kib<<20))
}

// logicalSize is the size of the database including what is still in its log.
func (c *conn) logicalSize() (int64, error) {
	pages, err := c.pragma("PRAGMA page_count")
	if err != nil {
		return 0, err
	}
	bytes, err := c.pragma("PRAGMA page_size")
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(pages, 10, 64)
	if err != nil {
		return 0, err
	}
	each, err := strconv.ParseInt(bytes, 10, 64)
	return n * each, err
}

// clone copies a database that nobody uses, with the files that SQLite keeps beside it.
func (f *copyFile) clone(ctx context.Context, from string) error {
	f.need = 0
	for _, suffix := range sidecars {
		if info, err := os.Stat(from + suffix); err == nil {
			f.need += info.Size()
		}
	}
	if err := f.checkRoom(); err != nil {
		return err
	}
	for _, suffix := range sidecars {
		if suffix == "-shm" {
			continue // the log's index, which the next opener makes anew
		}
		err := copyBytes(ctx, from+suffix, f.temp+suffix)
		if err != nil && (suffix == "" || !errors.Is(err, fs.ErrNotExist)) {
			return err
		}
	}
	return nil
}

func copyBytes(ctx context.Context, from, to string) (err error) {
	in, err := os.Open(from) //nolint:gosec // the caller names the file
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()                                      // the file was only read
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) //nolint:gosec // a name that this package chose
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	for {
		switch _, err := io.CopyN(out, in, 4<<20); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
	}
}

// publish checks the copy and gives it its name. In this order, a power cut at any time leaves no
// unfinished file under that name.
func (f *copyFile) publish(ctx context.Context) error {
	if err := f.seal(ctx, "PRAGMA quick_check(3)", nil); err != nil {
		return f.explain(err)
	}
	if err := f.checkFree(); err != nil {
		return err
	}
	if err := os.Rename(f.temp, f.path); err != nil {
		return err
	}
	f.reached("named")
	return syncName(f.path)
}

// syncName makes a new name survive a power cut, also in a folder that was just made.
func syncName(path string) error {
	folder := filepath.Dir(path)
	if err := syncDir(folder); err != nil {
		return err
	}
	if err := syncDir(filepath.Dir(folder)); !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil // a process that may not read the folder has made no folder in it
}

// seal makes the copy one file, checks it, lets edit change it, and syncs it.
func (f *copyFile) seal(ctx context.Context, check string, edit func(c *conn) error) error {
	if err := f.settle(ctx, check, edit); err != nil {
		return err
	}
	n, err := os.OpenFile(f.temp, os.O_RDWR, 0) // only now: closing it would release SQLite's locks
	if err != nil {
		return err
	}
	if err := errors.Join(n.Sync(), n.Close()); err != nil {
		return err
	}
	f.reached("sealed")
	return nil
}

func (f *copyFile) settle(ctx context.Context, check string, edit func(c *conn) error) (err error) {
	dc, err := f.connect(dsn(f.temp))
	if err != nil {
		return err
	}
	d := &direct{dc: dc}
	c := &conn{d}
	defer func() { err = errors.Join(err, c.finalize(), dc.Close()) }()
	// A database in WAL mode would get a log as soon as somebody opens it.
	switch mode, err := c.pragma("PRAGMA journal_mode = DELETE"); {
	case err != nil:
		return err
	case mode != "delete":
		return fmt.Errorf("take the copy out of WAL mode: it stays %q", mode)
	}
	if err := d.sound(ctx, check); err != nil {
		return err
	}
	switch version, err := schemaVersion(c); {
	case err != nil:
		return err
	case version == 0:
		return ErrForeign
	}
	if edit == nil {
		return nil
	}
	return edit(c)
}

// sound runs one of SQLite's checks, until ctx ends.
func (d *direct) sound(ctx context.Context, check string) error {
	s, err := d.dc.Prepare(check)
	if err != nil {
		return err
	}
	var faults []string
	err = eachRowUntil(ctx, s, nil, func(v []driver.Value) error {
		if text := asText(v[0]); text != "ok" {
			faults = append(faults, text)
		}
		return nil
	})
	if err = errors.Join(err, s.Close()); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
	if len(faults) > 0 {
		return fmt.Errorf("%w: %s", ErrDamaged, strings.Join(faults, "; "))
	}
	return nil
}

// close removes a copy that has no name yet, and leaves the folder.
func (f *copyFile) close() error {
	f.discard()
	return errors.Join(unlockFile(f.lock), f.lock.Close())
}

// discard removes an unfinished copy.
func (f *copyFile) discard() {
	for _, suffix := range sidecars {
		_ = os.Remove(f.temp + suffix) // the next copy tries again
	}
}

// reached tells a test how far the copy is.
func (f *copyFile) reached(point string) {
	if f.at != nil {
		f.at(point)
	}
}
