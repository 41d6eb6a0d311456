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
	// ErrOwned means that another process owns the file. The error's text names the process.
	ErrOwned = errors.New("owned by another process")
	// ErrNewer means that a newer release has written the file. Nothing was changed.
	ErrNewer = errors.New("database of a newer release")
	// ErrNotDurable means that the file cannot keep commits as durably as it was asked to.
	ErrNotDurable = errors.New("durability not given")
	// ErrCopied means that the file is a copy that was made while the original was in use. Two
	// nodes would deliver the same messages.
	ErrCopied = errors.New("copied while it was in use")
	// ErrReadOnly means that the file, its folder or its disk cannot be written to. Nothing was
	// accepted. The same call succeeds once the cause is removed.
	ErrReadOnly = fmt.Errorf("read-only: %w", holdfast.ErrUnavailable)
	// ErrDamaged means that the file is no sound SQLite database.
	ErrDamaged = errors.New("database file damaged")

	// ErrForeign means that this package has not made the file, or that others have changed the
	// package's tables in it.
	ErrForeign = errors.New("not a Holdfast database")

	// ErrLinked means that the file has several names (hard links). SQLite keeps the log beside one
	// name. A process that opens another name would miss the log's content, and both would
	// overwrite each other. Nothing was changed.
	ErrLinked = errors.New("the database file has another name")

	errIO            = errors.New("disk input/output error")
	errUndone        = errors.New("the transaction is over already: a statement that was interrupted or failed has undone it, or one ended it")
	errLostOwnership = errors.New("another process has taken the file over")
)

// coded is an error of modernc.org/sqlite.
type coded interface {
	error
	Code() int
}

// codeOf returns the result code of an SQLite error of any driver. It recognizes drivers that are
// not linked in by the form of their errors: a struct of a package with sqlite in its path, with a
// numeric field Code.
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

// isBusy reports whether another connection was writing.
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
		return err // it is translated already
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

// readOnly finds out why a file could not be opened for writing.
func readOnly(err error) error {
	if errors.Is(err, fs.ErrPermission) || isReadOnlyDisk(err) {
		return fmt.Errorf("%w: %w; this user must be able to write to the folder and to the files in it", ErrReadOnly, err)
	}
	return err
}
