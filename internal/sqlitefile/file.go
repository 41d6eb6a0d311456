// Package sqlitefile reads rows out of SQLite files that SQLite itself will not
// read any more: a page that cannot be used costs what stands on it, and nothing
// else.
//
// What it promises: it never panics, never runs for ever and never writes, whatever
// the bytes are. What it does not promise: that a row is what was written. A flipped
// bit inside a value looks like a value; the caller has to know which rows to believe.
//
// It reads the format of https://sqlite.org/fileformat2.html as far as files of
// Holdfast use it: pages of 4096 bytes, no reserved space, UTF-8, write-ahead log.
package sqlitefile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
)

// PageSize is that of every file that Holdfast makes.
const PageSize = 4096

// File is a database file with the log beside it.
type File struct {
	db, wal *os.File // either may be absent
	size    int64
	count   uint32
	frames  map[uint32]int64  // where in the log the newest copy of a page stands
	seen    map[uint32]uint32 // the root of the tree that leads to a page
	broken  map[uint32]struct{}
	skipped int
	fault   error // of the first page that the disk did not give
}

// Open opens the file at path, and the log at path+"-wal" if there is one.
func Open(path string) (*File, error) {
	f := &File{frames: map[uint32]int64{}, seen: map[uint32]uint32{}, broken: map[uint32]struct{}{}}
	var err error
	if f.db, err = openIfThere(path); err != nil {
		return nil, err
	}
	if f.wal, err = openIfThere(path + "-wal"); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if f.db == nil && f.wal == nil {
		return nil, fmt.Errorf("open %s: %w", path, os.ErrNotExist)
	}
	if f.db != nil {
		info, err := f.db.Stat()
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		f.size = info.Size()
	}
	pages := (f.size + PageSize - 1) / PageSize
	if f.wal != nil {
		info, err := f.wal.Stat()
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		bound := pages + info.Size()/(frameHeader+PageSize) // a page number that was damaged could be any
		if _, err := scanLog(f.wal, func(page uint32, offset int64) {
			if int64(page) <= bound {
				f.frames[page] = offset
				pages = max(pages, int64(page))
			}
		}); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	f.count = uint32(min(pages, 1<<32-2))
	return f, nil
}

func openIfThere(path string) (*os.File, error) {
	f, err := os.Open(path) //nolint:gosec // the caller's own file
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return f, err
}

// Close closes the files.
func (f *File) Close() error {
	var faults []error
	for _, file := range []*os.File{f.db, f.wal} {
		if file != nil {
			faults = append(faults, file.Close())
		}
	}
	return errors.Join(faults...)
}

// Pages is how many pages the file has, counting those that only the log has.
func (f *File) Pages() uint32 { return f.count }

// Damage is what the walks have met: pages that could not be used, and rows that
// could not be read.
func (f *File) Damage() (pages, rows int) { return len(f.broken), f.skipped }

// Fault is why the disk did not give a page, if it did not; Damage counts the page.
func (f *File) Fault() error { return f.fault }

// page reads page n, in its newest copy. A page that is cut short ends with
// zeros.
func (f *File) page(n uint32, buf []byte) ([]byte, bool) {
	if n == 0 || n > f.count {
		return nil, false
	}
	if buf == nil {
		buf = make([]byte, PageSize)
	}
	file, at := f.db, int64(n-1)*PageSize
	if offset, ok := f.frames[n]; ok {
		file, at = f.wal, offset
	}
	if file == nil {
		return nil, false
	}
	got, err := file.ReadAt(buf, at)
	if err != nil && !errors.Is(err, io.EOF) {
		f.broken[n] = struct{}{}
		f.fault = cmp.Or(f.fault, fmt.Errorf("read page %d: %w", n, err))
		return nil, false
	}
	if got == 0 {
		return nil, false
	}
	clear(buf[got:])
	return buf, true
}
