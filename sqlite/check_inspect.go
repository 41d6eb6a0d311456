package sqlite

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	moderncsqlite "modernc.org/sqlite"

	"github.com/holdfast-mq/holdfast/storecopy"
)

// InspectOptions say how thoroughly Inspect looks.
type InspectOptions struct {
	Within time.Duration // limit for the check of the file's integrity; half of it for the check of its rows; zero: no checks
	Full   bool          // makes both checks completely, however long they take
}

// Inspection is what Inspect finds in a file.
type Inspection struct {
	SQLite    string            // version of the program's SQLite
	WAL       bool              // the file is in the mode that makes commits durable
	Schema    int               // number of the file's last migration; 0: the file has no tables of this package
	Newest    int               // number of the last migration that this release knows
	Latest    time.Time         // the latest instant that the file has seen
	Parked    map[string]int64  // by destination, of the newest ParkedMost
	Waiting   []string          // destinations with pending messages
	Held      map[string]string // destinations whose lane is held, and why
	Admins    int               // tokens and people with the role admin for good
	Sites     int               // enrolled and not revoked
	Integrity Integrity
	Rows      RowCheck // of as many rows as the time allows
	Refused   error    // a move forbids that a node opens the file; nil: no move does
}

// ParkedMost is the largest number of parked messages that Inspect counts.
const ParkedMost = 100_000

// Integrity is the result of a check of the file's structure.
type Integrity struct {
	Checked  int // tables
	Tables   int
	Left     []string // tables for which there was no time
	Problems []string // at most 100
	Took     time.Duration
}

// ErrLogWaits means that a file has a log of commits without an index of the log, as a copy may
// have. Reading it would make the index.
var ErrLogWaits = errors.New("its next owner must merge its log first")

// Inspect reads the file at path and changes nothing, whether or not another process owns it. It
// makes no file, takes no ownership and merges no log. An error that wraps ErrDamaged means that
// the file is no sound database; os.ErrNotExist means that there is no file. Do not use Inspect for
// a file that this process has open: when a process closes a file, POSIX releases all its locks on
// that file.
func Inspect(ctx context.Context, path string, o InspectOptions) (Inspection, error) {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		path = to
	}
	for range 3 {
		before, err := logOf(path)
		if err != nil {
			return Inspection{}, fmt.Errorf("inspect %s: %w", path, err)
		}
		if err := marked(path); err != nil {
			return Inspection{}, fmt.Errorf("inspect %s: %w", path, err)
		}
		in, err := inspect(ctx, path, before, o)
		// Without a log the file is read as if nobody could write it. If an owner came meanwhile,
		// the result is worth nothing.
		if after, same := logOf(path); same == nil && (before.complete() || after == before) {
			if err != nil {
				return in, fmt.Errorf("inspect %s: %w", path, translate(err))
			}
			return in, nil
		}
	}
	return Inspection{}, fmt.Errorf("inspect %s: it kept changing; try again", path)
}

// logState tells whether somebody has written between two looks.
type logState struct {
	log, index bool      // the file exists
	size       int64     // of the log
	changed    time.Time // of the database file
}

// complete reports whether SQLite finds all files that it needs, so that it makes none.
func (s logState) complete() bool { return s.log && s.index }

func logOf(path string) (logState, error) {
	var s logState
	file, err := os.Stat(path)
	if err != nil {
		return s, err
	}
	s.changed = file.ModTime()
	if log, err := os.Stat(path + "-wal"); err == nil {
		s.log, s.size = true, log.Size()
	}
	_, err = os.Stat(path + "-shm")
	s.index = err == nil
	return s, nil
}

func inspect(ctx context.Context, path string, log logState, o InspectOptions) (in Inspection, err error) {
	in = Inspection{Newest: len(migrations()), Parked: map[string]int64{}, Held: map[string]string{}}
	name := dsn(path, "query_only(1)") + "&mode=ro"
	switch {
	case log.complete():
	case log.size > 0:
		return in, ErrLogWaits
	default:
		name += "&immutable=1" // otherwise SQLite would make the log and its index
	}
	size, wal, err := header(path)
	if err != nil {
		return in, err
	}
	if in.WAL = wal; size == 0 {
		name = "file::memory:?" // an owner died before its first write: there are no tables, but SQLite has a version
	}
	if o.Full {
		name += "&_pragma=cache_size(-262144)" // the full check reads all over the file
	}
	db := sql.OpenDB(connector{(&moderncsqlite.Driver{}).Open, name})
	db.SetMaxOpenConns(1)
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.QueryRowContext(ctx, `SELECT sqlite_version()`).Scan(&in.SQLite); err != nil {
		return in, err
	}
	if err := in.schema(ctx, db); err != nil {
		return in, err
	}
	// The tables of a newer release are not known here.
	if in.Schema > 0 && in.Schema <= in.Newest {
		err = in.content(ctx, db)
	}
	if o.Within > 0 || o.Full {
		err = errors.Join(err, in.Integrity.check(ctx, db, o)) // also for a damaged file: it says where the damage is
	}
	if err == nil && len(in.Integrity.Problems) == 0 && in.Schema == in.Newest && (o.Within > 0 || o.Full) {
		err = in.checkRows(ctx, db, o)
	}
	return in, err
}

// checkRows compares the rows with their hashes.
func (in *Inspection) checkRows(ctx context.Context, db *sql.DB, o InspectOptions) error {
	read := pagesOf(func(ctx context.Context, q query, args ...any) (*sql.Rows, error) {
		return db.QueryContext(ctx, queries[q], args...)
	})
	if o.Full {
		return in.Rows.run(ctx, read)
	}
	return in.Rows.within(ctx, o.Within/2, read)
}

// header reads the fields before the first page. SQLite itself does not tell the journal mode of a
// file that it opens as immutable.
func header(path string) (size int64, wal bool, err error) {
	f, err := os.Open(path) //nolint:gosec // the database that the caller named
	if err != nil {
		return 0, false, err
	}
	defer func() { _ = f.Close() }() // the file was only read
	var head [100]byte
	switch n, err := io.ReadFull(f, head[:]); {
	case n == 0 && errors.Is(err, io.EOF):
		return 0, false, nil
	case errors.Is(err, io.ErrUnexpectedEOF), err == nil && string(head[:16]) != "SQLite format 3\x00":
		return 0, false, fmt.Errorf("%w: it does not begin as an SQLite database", ErrDamaged)
	case err != nil:
		return 0, false, err
	}
	s, err := f.Stat()
	if err != nil {
		return 0, false, err
	}
	// A file whose size differs from its header was cut off or overwritten.
	page := int64(binary.BigEndian.Uint16(head[16:]))
	if page == 1 {
		page = 65536
	}
	pages := int64(binary.BigEndian.Uint32(head[28:]))
	if log, _ := logOf(path); log.size == 0 && s.Size() < page*pages {
		return s.Size(), false, fmt.Errorf("%w: it has %d bytes, and its header says %d", ErrDamaged, s.Size(), page*pages)
	}
	return s.Size(), head[18] == 2 && head[19] == 2, nil
}

func (in *Inspection) schema(ctx context.Context, db *sql.DB) error {
	var has int
	if err := db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'hf_meta'`).Scan(&has); err != nil || has == 0 {
		return err
	}
	var text string
	err := db.QueryRowContext(ctx, `SELECT value FROM hf_meta WHERE key = 'schema'`).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil {
		in.Schema, err = strconv.Atoi(text)
	}
	return err
}

// sitesSince is the number of the migration that makes the table of sites.
const sitesSince = 3

// peopleSince is the number of the migration that makes the table of people.
const peopleSince = 7

// content reads what an operator asks first.
func (in *Inspection) content(ctx context.Context, db *sql.DB) error {
	var noted, written sql.NullInt64
	if err := db.QueryRowContext(ctx, queries[lastInstant]).Scan(&written); err != nil {
		return err
	}
	if err := db.QueryRowContext(ctx, `SELECT value FROM hf_meta WHERE key = 'clock'`).Scan(&noted); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	var moved, copied string
	for key, text := range map[string]*string{metaMoved: &moved, metaCopy: &copied} {
		if err := db.QueryRowContext(ctx, exportMeta, key).Scan(text); err != nil {
			return err
		}
	}
	in.Refused = storecopy.Refusal(moved, copied)
	if latest := max(noted.Int64, written.Int64); latest > 0 {
		in.Latest = time.UnixMicro(latest)
	}
	if err := eachOf(ctx, db, queries[someParked], func(rows *sql.Rows) error {
		var name string
		var n int64
		err := rows.Scan(&name, &n)
		in.Parked[name] = n
		return err
	}); err != nil {
		return err
	}
	if err := eachOf(ctx, db, queries[waitingLanes], func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		in.Waiting = append(in.Waiting, name)
		return err
	}); err != nil {
		return err
	}
	if err := db.QueryRowContext(ctx, `SELECT count(*) FROM hf_token WHERE role = 'admin' AND until IS NULL`).Scan(&in.Admins); err != nil {
		return err
	}
	if in.Schema >= peopleSince {
		people := 0
		if err := db.QueryRowContext(ctx, `SELECT count(*) FROM hf_person WHERE role = 'admin' AND password <> '' AND disabled IS NULL`).Scan(&people); err != nil {
			return err
		}
		in.Admins += people
	}
	if in.Schema >= sitesSince {
		if err := db.QueryRowContext(ctx, `SELECT count(*) FROM hf_site WHERE enrolled IS NOT NULL AND revoked IS NULL`).Scan(&in.Sites); err != nil {
			return err
		}
	}
	return eachOf(ctx, db, queries[laneFaults], func(rows *sql.Rows) error {
		var name, why string
		var since sql.NullInt64
		err := rows.Scan(&name, &why, &since)
		in.Held[name] = why
		return err
	})
}

func eachOf(ctx context.Context, db *sql.DB, query string, row func(*sql.Rows) error) error {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // Err has the errors that matter
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
