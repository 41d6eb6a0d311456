package sqlite

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
)

// runner runs the store's SQL on one connection, for one goroutine at a time.
// Statements of ours are never cancelled: an interrupt inside a shared
// transaction would undo others' work.
type runner interface {
	run(id statement, args []driver.Value) (driver.Result, error)
	// each calls row for every row of the query. The values are valid only
	// during the call, except strings and byte slices, which are row's to keep.
	each(id statement, row func(v []driver.Value) error, args ...driver.Value) error
	// text runs SQL that is not worth keeping prepared, rows queries with it.
	text(sql string) error
	rows(sql string, row func(v []driver.Value) error, args ...driver.Value) error

	// begin takes the right to write; nobody else can until commit or rollback.
	begin() error
	commit() error
	// rollback ends whatever is open; there may be nothing.
	rollback()
	// open says whether a transaction is open: a statement that was interrupted,
	// or met a full disk, has undone it, and the next one would commit by itself.
	open() bool
	// lend begins like begin, for a caller's own statements.
	lend() (*sql.Tx, error)
	// ended tells that the caller's transaction is over.
	ended()
	// alone runs statements while a caller's transaction is open, and keeps
	// database/sql out meanwhile.
	alone(statements func() error) error
	// finalize ends the prepared statements.
	finalize() error
}

// conn is a runner with what can be said in its words.
type conn struct{ runner }

// exec returns how many rows were changed.
func (c *conn) exec(id statement, args ...driver.Value) (int64, error) {
	r, err := c.run(id, args)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// insert returns the key of the new row, or 0 when the statement inserted
// none because of a conflict that it ignores.
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

// errStop, returned by a row function, ends a query early without an error.
var errStop = errors.New("enough rows")

// one is each for a query of at most one row; found tells whether there was.
func (c *conn) one(id statement, row func(v []driver.Value) error, args ...driver.Value) (found bool, err error) {
	err = c.each(id, func(v []driver.Value) error {
		found = true
		return row(v)
	}, args...)
	return found, err
}

// pragma reads the first value of the first row, as text.
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

// Readers of driver values. A column that can be NULL reads as zero.

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

// payload reads an empty payload as empty, not as none.
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
