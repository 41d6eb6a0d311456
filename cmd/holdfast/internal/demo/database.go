package demo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	_ "modernc.org/sqlite" // the driver with which the demo reads the file
)

// database is the foreign database that sites write to. Each row counts how often it was written:
// the site's statement counts repeats.
type database struct {
	book *ledger
	pool *sql.DB

	mu     sync.Mutex
	conn   *sql.Conn // the only one; it locks the database and can still read
	locked bool
	seen   int64 // the last row that was booked
}

const (
	// schema accepts no value below zero, which a broken sensor would send.
	schema = `create table readings (
  id text primary key, reading text not null, value real not null check (value >= 0), times integer not null default 1)`
	// statement is the site's statement.
	statement = "insert into readings (id, reading, value) values (:_id, :reading, :value) on conflict (id) do update set times = times + 1"
)

// newDatabase makes the file readings.db, and the file that tells sites where it is.
func newDatabase(ctx context.Context, dir string, book *ledger) (*database, error) {
	path := filepath.Join(dir, "readings.db")
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") { // a drive letter
		slashed = "/" + slashed
	}
	name := url.URL{Scheme: "file", Path: slashed, RawQuery: "_pragma=busy_timeout(5000)"}
	pool, err := sql.Open("sqlite", name.String())
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	d := &database{book: book, pool: pool}
	if d.conn, err = pool.Conn(ctx); err == nil {
		_, err = d.conn.ExecContext(ctx, schema)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "readings.dsn"), []byte(path+"\n"), 0o600)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make %s: %w", path, err), d.close())
	}
	return d, nil
}

// lock begins or ends a period in which nobody else can write.
func (d *database) lock(ctx context.Context, on bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if on == d.locked {
		return nil
	}
	text := "rollback"
	if on {
		text = "begin immediate"
	}
	if _, err := d.conn.ExecContext(ctx, text); err != nil {
		return fmt.Errorf("%s at the database: %w", text, err)
	}
	d.locked = on
	return nil
}

// look books new rows. With all, it books how often every row was written.
func (d *database) look(ctx context.Context, all bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	from := d.seen
	if all {
		from = 0
	}
	rows, err := d.conn.QueryContext(ctx, "select rowid, id, reading, times from readings where rowid > ? order by rowid", from)
	if err != nil {
		return fmt.Errorf("look into the database: %w", err)
	}
	defer rows.Close() //nolint:errcheck // Err reports it
	for rows.Next() {
		var key, reading string
		var times int
		if err := rows.Scan(&d.seen, &key, &reading, &times); err != nil {
			return fmt.Errorf("look into the database: %w", err)
		}
		if err := d.book.row(key, reading, times); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("look into the database: %w", err)
	}
	return nil
}

func (d *database) close() error {
	var err error
	if d.conn != nil {
		err = d.conn.Close()
	}
	return errors.Join(err, d.pool.Close())
}
