package sqlite

import "golang.org/x/sys/unix"

// placeOf returns a file's number and its time of creation, or 0 if the file system keeps none.
func placeOf(path string) (number uint64, born int64, ok bool) {
	var s unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO|unix.STATX_BTIME, &s); err != nil {
		return 0, 0, false
	}
	if s.Mask&unix.STATX_BTIME != 0 {
		born = s.Btime.Sec*1_000_000_000 + int64(s.Btime.Nsec)
	}
	return s.Ino, born, true
}
