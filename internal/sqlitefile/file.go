// Package sqlitefile reads rows from SQLite files that SQLite itself no longer reads. An unusable
// page costs only what is on it.
//
// It promises that it never panics, never runs for ever and never writes, whatever the bytes are.
// It does not promise that a row is what was written. A flipped bit inside a value looks like a
// value; the caller must decide which rows to believe.
//
// It reads the format of https://sqlite.org/fileformat2.html as far as Holdfast's files use it:
// pages of 4096 bytes, no reserved space, UTF-8, write-ahead log.
package sqlitefile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
)

// PageSize is the page size of every file that Holdfast makes.
const PageSize = 4096

// File is a database file together with its log.
type File struct {
	db, wal *os.File // either may be absent
	size    int64
	count   uint32
	frames  map[uint32]int64  // offset in the log of the newest copy of a page
	seen    map[uint32]uint32 // root of the tree that leads to a page
	broken  map[uint32]struct{}
	skipped int
	fault   error // of the first page that the disk failed to read
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
		bound := pages + info.Size()/(frameHeader+PageSize) // a damaged page number could be anything
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
	f, err := os.Open(path) //nolint:gosec // the caller named the file
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

// Pages returns how many pages the file has, including those that are only in the log.
func (f *File) Pages() uint32 { return f.count }

// Damage returns how many pages could not be used and how many rows could not be read so far.
func (f *File) Damage() (pages, rows int) { return len(f.broken), f.skipped }

// Fault returns why the disk failed to read a page, or nil. Damage counts the page.
func (f *File) Fault() error { return f.fault }

// page reads the newest copy of page n. If the page is cut short, the rest is zeros.
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
