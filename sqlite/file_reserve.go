package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// reserveSize is the default size of the reserve: as much as the log file holds between two
// checkpoints. The database file may grow by that much before the log can be used again.
const reserveSize = 16 << 20

// reserve is a file beside the database that only occupies room, so that some can be given back
// when the disk is full. It remains when the process ends: nobody else can take its room before the
// next process starts.
type reserve struct {
	path string
	want int64 // 0: no reserve

	mu   sync.Mutex
	held int64
}

// adopt finds what an earlier process has set aside. If want is 0, a larger file stays as it is.
func (r *reserve) adopt(path string, want int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.path = path
	s, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case !s.Mode().IsRegular():
		return fmt.Errorf("%s is no file", path)
	default:
		r.held = s.Size()
	}
	r.want = max(want, 0)
	if want == 0 {
		r.want = max(reserveSize, r.held)
	}
	if r.held > r.want {
		return r.resize(r.want)
	}
	return nil
}

// missing returns how many bytes are still to be set aside.
func (r *reserve) missing() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.want - r.held
}

func (r *reserve) holds() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held
}

// fill sets aside all that is missing, or nothing.
func (r *reserve) fill() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.want == 0 {
		return nil
	}
	f, err := os.OpenFile(r.path, os.O_RDWR|os.O_CREATE, 0o640) //nolint:gosec // beside the database, and as readable
	if err != nil {
		return err
	}
	// From the start: a copy of the file may have holes.
	err = allocate(f, 0, r.want)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		err = errors.Join(err, f.Truncate(r.held))
	}
	if err = errors.Join(err, f.Close()); err == nil {
		r.held = r.want
	}
	return err
}

// give gives a part of the reserve back to the disk, and reports whether there was any. It gives
// parts, because others who write to the disk take of it, too.
func (r *reserve) give() (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held == 0 {
		return false, nil
	}
	const parts = 4
	left := r.held - max(r.want/parts, 1)
	if left < r.want/(2*parts) { // too little to be worth it
		left = 0
	}
	if err := r.resize(left); err != nil {
		return false, err
	}
	return true, nil
}

// resize makes the file smaller.
func (r *reserve) resize(to int64) error {
	var err error
	if to == 0 {
		err = os.Remove(r.path)
	} else {
		err = os.Truncate(r.path, to)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	r.held = to
	return nil
}

// probe finds out whether the disk takes more. What SQLite reports as an I/O error can mean a full
// disk or quota.
func (r *reserve) probe() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	const little = 64 << 10
	f, err := os.OpenFile(r.path, os.O_RDWR|os.O_CREATE, 0o640) //nolint:gosec // beside the database, and as readable
	if err != nil {
		return err
	}
	err = errors.Join(writeZeros(f, r.held, little), f.Sync(), f.Truncate(r.held), f.Close())
	if r.held == 0 {
		err = errors.Join(err, os.Remove(r.path))
	}
	return err
}

// writeZeros is allocate for systems without a call for it.
func writeZeros(f *os.File, from, bytes int64) error {
	zeros := make([]byte, 64<<10)
	for at := from; at < from+bytes; at += int64(len(zeros)) {
		n := min(int64(len(zeros)), from+bytes-at)
		if _, err := f.WriteAt(zeros[:n], at); err != nil {
			return err
		}
	}
	return nil
}
