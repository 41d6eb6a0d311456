package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"strings"

	lib "modernc.org/sqlite/lib"

	"github.com/holdfast-mq/holdfast"
)

// Errors of opening and owning a file.
var (
	// ErrOwned says that another process owns the file; the text names it.
	ErrOwned = errors.New("owned by another process")
	// ErrNewer says that the file was written by a newer release. It has not
	// been touched.
	ErrNewer = errors.New("database of a newer release")
	// ErrNotDurable says that the file does not keep what it was asked to keep.
	ErrNotDurable = errors.New("durability not given")
	// ErrCopied says that the file is a copy that was made while the original
	// was in use: two nodes would deliver the same messages.
	ErrCopied = errors.New("copied while it was in use")
	// ErrReadOnly says that the file, its folder or its disk cannot be written
	// to. Nothing was accepted; the same call succeeds once that is mended.
	ErrReadOnly = fmt.Errorf("read-only: %w", holdfast.ErrUnavailable)
	// ErrDamaged says that the file is no sound SQLite database.
	ErrDamaged = errors.New("database file damaged")

	// ErrForeign says that the file is none that this package has made, or that
	// others have changed our tables in it.
	ErrForeign = errors.New("not a Holdfast database")

	// ErrLinked says that the file has several names (hard links). SQLite keeps
	// the log beside the name, so that by another name what is in the log is
	// missed, and both would be written over. Nothing has been touched.
	ErrLinked = errors.New("the database file has another name")

	errIO            = errors.New("disk input/output error")
	errUndone        = errors.New("the transaction is over already: a statement that was interrupted or failed has undone it, or one ended it")
	errLostOwnership = errors.New("another process has taken the file over")
)

// coded is an error of SQLite as modernc.org/sqlite has it.
type coded interface {
	error
	Code() int
}

// codeOf is the result code of an SQLite error, whichever driver it comes
// from. Drivers that are not linked in are known by the form of their errors:
// a struct of a package with sqlite in its path whose field Code is a number.
func codeOf(err error) (code int, ok bool) {
	if e, ok := errors.AsType[coded](err); ok {
		return e.Code(), true
	}
	for err != nil {
		if many, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range many.Unwrap() {
				if code, ok := codeOf(e); ok {
					return code, true
				}
			}
			return 0, false
		}
		v := reflect.Indirect(reflect.ValueOf(err))
		if v.Kind() == reflect.Struct && strings.Contains(v.Type().PkgPath(), "sqlite") {
			if f := v.FieldByName("Code"); f.IsValid() && f.CanInt() {
				return int(f.Int()), true
			}
		}
		err = errors.Unwrap(err)
	}
	return 0, false
}

// isBusy says whether another connection was writing.
func isBusy(err error) bool {
	code, ok := codeOf(err)
	return ok && (code&0xff == lib.SQLITE_BUSY || code&0xff == lib.SQLITE_LOCKED)
}

// translate gives a driver's error the library's meaning.
func translate(err error) error {
	code, ok := codeOf(err)
	if !ok {
		if noRoom(err) && !errors.Is(err, holdfast.ErrDiskFull) { // of a file that is not SQLite's
			return fmt.Errorf("%w: %w", holdfast.ErrDiskFull, err)
		}
		return err
	}
	if errors.Is(err, holdfast.ErrDiskFull) || errors.Is(err, errIO) || errors.Is(err, ErrDamaged) || errors.Is(err, ErrReadOnly) {
		return err // it has been done
	}
	switch code & 0xff {
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		if errors.Is(err, holdfast.ErrUnavailable) {
			return err
		}
		return fmt.Errorf("%w: another program has held the right to write to the database for long: %w", holdfast.ErrUnavailable, err)
	case lib.SQLITE_FULL:
		return fmt.Errorf("%w: %w", holdfast.ErrDiskFull, err)
	case lib.SQLITE_READONLY:
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	case lib.SQLITE_IOERR, lib.SQLITE_CANTOPEN:
		return fmt.Errorf("%w: %w", errIO, err)
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB:
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

// readOnly tells what kept us from opening a file for writing.
func readOnly(err error) error {
	if errors.Is(err, fs.ErrPermission) || isReadOnlyDisk(err) {
		return fmt.Errorf("%w: %w; this user must be able to write to the folder and to the files in it", ErrReadOnly, err)
	}
	return err
}
