package sqlite

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
)

// runner runs the store's SQL on one connection, for one goroutine at a time. The store's own
// statements are never cancelled: an interrupt inside a shared transaction would undo the work of
// others.
type runner interface {
	run(id statement, args []driver.Value) (driver.Result, error)
	// each calls row for every row of the query. The values are valid only during the call, except
	// strings and byte slices, which row may keep.
	each(id statement, row func(v []driver.Value) error, args ...driver.Value) error
	// text runs SQL that is not worth preparing; rows runs a query of that kind.
	text(sql string) error
	rows(sql string, row func(v []driver.Value) error, args ...driver.Value) error

	// begin takes the right to write. Nobody else can write until commit or rollback.
	begin() error
	commit() error
	// rollback ends the open transaction, if there is one.
	rollback()
	// open reports whether a transaction is open. A statement that was interrupted or met a full
	// disk has undone its transaction; the next statement would commit alone.
	open() bool
	// lend is begin for the statements of a caller.
	lend() (*sql.Tx, error)
	// ended tells the runner that the caller's transaction is over.
	ended()
	// alone runs statements while a caller's transaction is open, and keeps database/sql from the
	// connection meanwhile.
	alone(statements func() error) error
	// finalize closes the prepared statements.
	finalize() error
}

// conn adds methods to a runner that need nothing but the runner's.
type conn struct{ runner }

// exec runs a statement and returns how many rows it changed.
func (c *conn) exec(id statement, args ...driver.Value) (int64, error) {
	r, err := c.run(id, args)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// insert returns the key of the new row, or 0 if the statement inserted no row because of a
// conflict that it ignores.
func (c *conn) insert(id statement, args ...driver.Value) (int64, error) {
	r, err := c.run(id, args)
	if err != nil {
		return 0, err
	}
	if n, err := r.RowsAffected(); err != nil || n == 0 {
		return 0, err
	}
	return r.LastInsertId()
}

// errStop ends a query early without an error when a row function returns it.
var errStop = errors.New("enough rows")

// one is each for a query of at most one row. found reports whether there was a row.
func (c *conn) one(id statement, row func(v []driver.Value) error, args ...driver.Value) (found bool, err error) {
	err = c.each(id, func(v []driver.Value) error {
		found = true
		return row(v)
	}, args...)
	return found, err
}

// pragma returns the first value of the first row, as text.
func (c *conn) pragma(sql string) (value string, err error) {
	first := true
	err = c.rows(sql, func(v []driver.Value) error {
		if first && len(v) > 0 && v[0] != nil {
			value = fmt.Sprint(v[0])
		}
		first = false
		return nil
	})
	return value, err
}

// Readers of driver values. NULL reads as zero.

func asInt(v driver.Value) int64 {
	n, _ := v.(int64)
	return n
}

func asText(v driver.Value) string {
	s, _ := v.(string)
	return s
}

func asBytes(v driver.Value) []byte {
	b, _ := v.([]byte)
	return b
}

// payload reads an empty payload as an empty slice, not as nil.
func payload(v driver.Value) []byte {
	if b := asBytes(v); b != nil {
		return b
	}
	return []byte{}
}

// nullText binds an empty text as NULL.
func nullText(s string) driver.Value {
	if s == "" {
		return nil
	}
	return s
}

// nullInstant binds never as NULL.
func nullInstant(at int64) driver.Value {
	if at == never {
		return nil
	}
	return at
}

func asBit(b bool) driver.Value {
	if b {
		return int64(1)
	}
	return int64(0)
}
