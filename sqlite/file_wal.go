package sqlite

import "os"

// WALBytes is the size of the write-ahead log on disk, 0 where there is none.
// It is at most a few tens of MiB unless somebody reads one snapshot of the
// file for long: the log cannot begin anew before the reader ends, and shrinks
// at the next checkpoint after it.
func (db *DB) WALBytes() int64 {
	s, err := os.Stat(db.path + "-wal")
	if err != nil {
		return 0
	}
	return s.Size()
}
