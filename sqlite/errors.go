package sqlite

import (
	"errors"
	"fmt"
	"io/fs"

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

	errIO            = errors.New("disk input/output error")
	errUndone        = errors.New("the transaction is over already: a statement that was interrupted or failed has undone it, or one ended it")
	errLostOwnership = errors.New("another process has taken the file over")
)

// coded is an error of SQLite, whichever driver it comes from.
type coded interface {
	error
	Code() int
}

// translate gives a driver's error the library's meaning.
func translate(err error) error {
	e, ok := errors.AsType[coded](err)
	if !ok {
		return err
	}
	if errors.Is(err, holdfast.ErrDiskFull) || errors.Is(err, errIO) || errors.Is(err, ErrDamaged) || errors.Is(err, ErrReadOnly) {
		return err // it has been done
	}
	switch e.Code() & 0xff {
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
