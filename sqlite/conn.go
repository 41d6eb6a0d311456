package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
)

// conn runs prepared statements on one driver connection, below
// database/sql, which would take a lock and allocate for each. It is used by
// one goroutine at a time.
type conn struct {
	dc    driver.Conn
	stmts [statementCount]driver.Stmt
	args  []driver.NamedValue
}

func (c *conn) prepared(id statement) (driver.Stmt, error) {
	if s := c.stmts[id]; s != nil {
		return s, nil
	}
	s, err := c.dc.Prepare(statements[id])
	if err != nil {
		return nil, fmt.Errorf("prepare %q: %w", statements[id], err)
	}
	c.stmts[id] = s
	return s, nil
}

func (c *conn) bind(args []driver.Value) []driver.NamedValue {
	c.args = c.args[:0]
	for i, a := range args {
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return c.args
}

// exec returns how many rows were changed. Statements of ours are never
// cancelled: an interrupt inside a shared transaction would undo others' work.
func (c *conn) exec(id statement, args ...driver.Value) (int64, error) {
	s, err := c.prepared(id)
	if err != nil {
		return 0, err
	}
	r, err := s.(driver.StmtExecContext).ExecContext(context.Background(), c.bind(args))
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// insert returns the key of the new row, or 0 when the statement inserted
// none because of a conflict that it ignores.
func (c *conn) insert(id statement, args ...driver.Value) (int64, error) {
	s, err := c.prepared(id)
	if err != nil {
		return 0, err
	}
	r, err := s.(driver.StmtExecContext).ExecContext(context.Background(), c.bind(args))
	if err != nil {
		return 0, err
	}
	if n, err := r.RowsAffected(); err != nil || n == 0 {
		return 0, err
	}
	return r.LastInsertId()
}

// each calls row for every row of the query. The values are valid only
// during the call, except strings and byte slices, which are row's to keep.
func (c *conn) each(id statement, row func(v []driver.Value) error, args ...driver.Value) error {
	s, err := c.prepared(id)
	if err != nil {
		return err
	}
	return eachRow(s, c.bind(args), row)
}

// errStop, returned by a row function, ends a query early without an error.
var errStop = errors.New("enough rows")

func eachRow(s driver.Stmt, args []driver.NamedValue, row func(v []driver.Value) error) (err error) {
	return eachRowUntil(context.Background(), s, args, row)
}

// eachRowUntil is eachRow for a query that takes long, outside of the writer.
func eachRowUntil(ctx context.Context, s driver.Stmt, args []driver.NamedValue, row func(v []driver.Value) error) (err error) {
	rows, err := s.(driver.StmtQueryContext).QueryContext(ctx, args)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	v := make([]driver.Value, len(rows.Columns()))
	for {
		switch err := rows.Next(v); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		switch err := row(v); {
		case errors.Is(err, errStop):
			return nil
		case err != nil:
			return err
		}
	}
}

// one is each for a query of at most one row; found tells whether there was.
func (c *conn) one(id statement, row func(v []driver.Value) error, args ...driver.Value) (found bool, err error) {
	err = c.each(id, func(v []driver.Value) error {
		found = true
		return row(v)
	}, args...)
	return found, err
}

// open says whether a transaction is open: a statement that was interrupted,
// or met a full disk, has undone it, and the next one would commit by itself.
// SQLite has no statement that tells, but refuses to begin twice.
func (c *conn) open() bool {
	if _, err := c.exec(beginProbe); err != nil {
		return true
	}
	_, _ = c.exec(rollbackNow) // it had nothing in it
	return false
}

// text runs SQL that is not worth keeping prepared.
func (c *conn) text(sql string) error {
	s, err := c.dc.Prepare(sql)
	if err != nil {
		return err
	}
	_, err = s.(driver.StmtExecContext).ExecContext(context.Background(), nil)
	return errors.Join(err, s.Close())
}

// rows is each for SQL that is not worth keeping prepared.
func (c *conn) rows(sql string, row func(v []driver.Value) error) (err error) {
	s, err := c.dc.Prepare(sql)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return eachRow(s, nil, row)
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

// finalize ends the prepared statements; the connection itself belongs to
// database/sql.
func (c *conn) finalize() error {
	var faults []error
	for i, s := range c.stmts {
		if s != nil {
			faults = append(faults, s.Close())
			c.stmts[i] = nil
		}
	}
	return errors.Join(faults...)
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
