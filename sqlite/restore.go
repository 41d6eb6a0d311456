package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	moderncsqlite "modernc.org/sqlite"

	"github.com/holdfast-mq/holdfast"
)

// Restored describes a finished restore.
type Restored struct {
	Path string // the database
	Kept string // the former content of Path, under its new name; empty: there was none
	Size int64
	Rows RowCheck // of the copy
}

// RestoreOptions say what Restore tolerates.
type RestoreOptions struct {
	// Broken restores rows too that are not what was accepted. A node parks them or lists them as
	// damaged when it meets them, and sends none of them.
	Broken bool
}

// Restore puts a copy of the database file at from in the place of the database at path to, which
// need not exist. No process may use that database: ErrOwned names the process that does. Restore
// checks the copy first, each row by its hash. ErrDamaged, ErrForeign and ErrNewer say why the copy
// is of no use, and a BrokenError names the rows that are not what was accepted; then nothing was
// changed. Restore migrates a copy of an older release, as Open would. It keeps the old database
// under another name, with its log. If the process dies at any point, the next Open or Restore
// finds the old database or the new one complete.
//
// The restored database has a new incarnation and a later epoch, so that claims from before do not
// count. Its claims are careful, as after an unclean stop. What was delivered after the copy was
// made is delivered again, with the same id.
func Restore(ctx context.Context, from, to string, o RestoreOptions) (Restored, error) {
	r, err := restore(ctx, from, to, o, nil)
	if err != nil {
		return r, fmt.Errorf("restore %s from %s: %w", to, from, err)
	}
	return r, nil
}

// restore is Restore that tells a test how far it is.
func restore(ctx context.Context, from, to string, o RestoreOptions, at func(point string)) (r Restored, err error) {
	if from, err = realPath(from); err != nil {
		return r, err
	}
	if r.Path, err = realPath(to); err != nil {
		return r, err
	}
	source, err := checkSource(from, r.Path)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, source.release()) }()
	if err := os.MkdirAll(filepath.Dir(r.Path), 0o750); err != nil {
		return r, err
	}
	owner, err := own(r.Path + ".lock")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, owner.release()) }()
	if err := sameOwner(r.Path, r.Path+".lock"); err != nil {
		return r, err
	}
	if _, err := resumeRestore(r.Path); err != nil {
		return r, err
	}
	if err := checkLog(from); err != nil {
		return r, err
	}
	ready, err := prepare(ctx, from, &r, o, at)
	if err != nil {
		return r, err
	}
	if r.Kept, err = switchTo(ready, r.Path, at); err != nil {
		return r, err
	}
	info, err := os.Stat(r.Path)
	if err != nil {
		return r, err
	}
	r.Size = info.Size()
	return r, nil
}

// checkSource refuses a file that another process may write to, and keeps others from opening it
// meanwhile.
func checkSource(from, to string) (*ownership, error) {
	a, err := os.Stat(from)
	if err != nil {
		return nil, err
	}
	if !a.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s is no regular file", ErrForeign, from)
	}
	if b, err := os.Stat(to); err == nil && os.SameFile(a, b) {
		return nil, fmt.Errorf("%w: it is the database itself", fs.ErrInvalid)
	}
	if _, err := os.Stat(from + ".lock"); err != nil {
		return nil, nil //nolint:nilnil,nilerr // no store was ever opened there
	}
	owner, err := own(from + ".lock")
	if errors.Is(err, ErrOwned) {
		return nil, fmt.Errorf("the source is in use; make a backup of it instead: %w", err)
	}
	return owner, nil // on a read-only disk the lock cannot be taken, and nobody can have it
}

// The switch needs several renames, and a crash may come between any two. A copy under the name
// restoredInfix is complete. From then on the switch can only be finished, by the file's next owner
// (resumeRestore). The name of the copy gives the new name of the old files.
//
//	x.db.restoring                  the copy, incomplete: removed by the next restore
//	x.db.restored-20260102T030405Z  the copy, complete
//	x.db.before-20260102T030405Z    the former x.db; its log is …Z-wal, the mark of damage …Z.damaged
//
// While the last two both exist, x.db and x.db-wal belong to the old database, or are gone already.
// The new database gets its name only after their removal is on disk. So the log of one database
// never meets the file of another.
const (
	restoringSuffix = ".restoring"
	restoredInfix   = ".restored-"
	beforeInfix     = ".before-"
	stampLayout     = "20060102T150405Z"
)

// prepare makes a complete copy beside the database.
func prepare(ctx context.Context, from string, r *Restored, o RestoreOptions, at func(point string)) (ready string, err error) {
	path := r.Path
	f := &copyFile{
		path: path, folder: filepath.Dir(path), temp: path + restoringSuffix,
		connect: (&moderncsqlite.Driver{}).Open, at: at,
	}
	defer f.discard()
	f.discard() // left by a restore that died
	if err := f.clone(ctx, from); err != nil {
		return "", f.explain(err)
	}
	f.reached("copied")
	epoch := epochOf(path)
	if err := f.seal(ctx, "PRAGMA integrity_check(3)", func(c *conn) error {
		if err := checkVersions(c); err != nil {
			return err
		}
		if err := migrate(c); err != nil { // rows are read as this release has them
			return err
		}
		if r.Rows, err = c.checkRows(ctx); err != nil {
			return err
		}
		if r.Rows.Broken > 0 && !o.Broken {
			return &BrokenError{r.Rows}
		}
		return rebirth(c, epoch)
	}); err != nil {
		return "", f.explain(err)
	}
	if err := errors.Join(sameRights(path, f.temp), sameOwner(path, f.temp)); err != nil {
		return "", err
	}
	stamp, err := freeStamp(path)
	if err != nil {
		return "", err
	}
	ready = path + restoredInfix + stamp
	if err := os.Rename(f.temp, ready); err != nil {
		return "", err
	}
	if err := syncDir(f.folder); err != nil {
		return "", err
	}
	f.reached("ready")
	return ready, nil
}

// rebirth makes the copy an independent database. Claims from before mean nothing in it, and do not
// show that an attempt killed a process.
func rebirth(c *conn, epoch int64) (err error) {
	have, err := c.meta(metaEpoch)
	if err != nil {
		return err
	}
	if err := c.begin(); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			c.rollback()
		}
	}()
	if _, err := c.exec(setMeta, metaIncarnation, string(holdfast.NewID())); err != nil {
		return err
	}
	for key, value := range map[string]int64{metaEpoch: max(have, epoch) + 1, metaClean: stopUnclean} {
		if _, err := c.exec(setMeta, key, value); err != nil {
			return err
		}
	}
	if _, err := c.exec(forgetClaims); err != nil {
		return err
	}
	return c.commit()
}

// epochOf reads the epoch of a database that may be damaged or missing.
func epochOf(path string) int64 {
	if _, err := os.Stat(path); err != nil {
		return 0
	}
	name := dsn(path) + "&mode=ro"
	if _, err := os.Stat(path + "-wal"); err != nil {
		name += "&immutable=1" // leaves no files beside it
	}
	dc, err := (&moderncsqlite.Driver{}).Open(name)
	if err != nil {
		return 0
	}
	c := &conn{&direct{dc: dc}}
	epoch, err := c.meta(metaEpoch)
	if errors.Join(err, c.finalize(), dc.Close()) != nil {
		return 0
	}
	return epoch
}

// freeStamp returns the present time, or the next second that no restore has used.
func freeStamp(path string) (string, error) {
	for at := time.Now().UTC(); ; at = at.Add(time.Second) {
		stamp := at.Format(stampLayout)
		taken := false
		for _, suffix := range sidecars {
			_, err := os.Lstat(path + beforeInfix + stamp + suffix)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return "", err
			}
			taken = taken || err == nil
		}
		if !taken {
			return stamp, nil
		}
	}
}

// restoredFile finds the copy of an interrupted restore.
func restoredFile(path string) (string, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	prefix := filepath.Base(path) + restoredInfix
	found := ""
	for _, e := range entries {
		stamp, ok := strings.CutPrefix(e.Name(), prefix)
		if !ok {
			continue
		}
		if _, err := time.Parse(stampLayout, stamp); err != nil {
			continue // SQLite's files beside a copy, or a foreign file
		}
		if found != "" {
			return "", fmt.Errorf("two restores of %s were cut off; remove all but the right one of %s*", path, path+restoredInfix)
		}
		found = filepath.Join(filepath.Dir(path), e.Name())
	}
	return found, nil
}

// resumeRestore finishes a restore that was interrupted after its copy was complete. The owner of
// the file calls it before it looks at the file.
func resumeRestore(path string) (resumed bool, err error) {
	ready, err := restoredFile(path)
	if err != nil || ready == "" {
		return false, err
	}
	if _, err := switchTo(ready, path, nil); err != nil {
		return false, fmt.Errorf("finish the restore that was cut off: %w", err)
	}
	return true, nil
}

// switchTo moves what is at path out of the way, and the copy there.
func switchTo(ready, path string, at func(point string)) (kept string, err error) {
	f := &copyFile{at: at}
	damaged, err := supersede(path)
	if err != nil {
		return "", err
	}
	aside := path + beforeInfix + strings.TrimPrefix(ready, path+restoredInfix)
	for _, suffix := range sidecars {
		if err := moveAside(path+suffix, aside+suffix); err != nil {
			return "", err
		}
		f.reached("aside" + suffix)
	}
	// The mark of damage belongs to the old database, not to the new one.
	if err := moveAside(markOf(path), markOf(aside)); err != nil {
		return "", err
	}
	f.reached("aside mark")
	if err := syncDir(filepath.Dir(path)); err != nil {
		return "", err
	}
	f.reached("cleared")
	if err := os.Rename(ready, path); err != nil {
		return "", err
	}
	f.reached("switched")
	if err := syncName(path); err != nil {
		return "", err
	}
	if _, err := os.Lstat(aside); err != nil {
		return damaged, nil //nolint:nilerr // nothing was there, or it was damaged
	}
	return aside, nil
}

// moveAside renames a file that may be gone already. It overwrites no file.
func moveAside(from, to string) error {
	if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, err := os.Lstat(to); err == nil {
		return fmt.Errorf("keep %s as %s: %w", from, to, fs.ErrExist)
	}
	return os.Rename(from, to)
}

// sameOwner gives a new file the owner of the database, or else of its folder.
func sameOwner(path, file string) error {
	like, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		like, err = os.Stat(filepath.Dir(path))
	}
	if err != nil {
		return err
	}
	return giveTo(file, like)
}

// sameRights gives a new file the mode of the database, if there is one.
func sameRights(path, file string) error {
	like, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.Chmod(file, like.Mode().Perm())
}
