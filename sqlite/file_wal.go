package sqlite

import "os"

// WALBytes returns the size of the write-ahead log on disk, or 0 if there is none. It is at most a
// few tens of MiB unless somebody reads one snapshot of the file for long. The log cannot start
// over before that reader ends, and shrinks at the next checkpoint after it.
func (db *DB) WALBytes() int64 {
	s, err := os.Stat(db.path + "-wal")
	if err != nil {
		return 0
	}
	return s.Size()
}
