package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
)

// direct runs prepared statements on the driver's connection to the store's own file. It bypasses
// database/sql, which would lock and allocate for each statement.
type direct struct {
	dc    driver.Conn
	via   *sql.Conn     // the same connection, for callers' transactions; nil: there are none
	stmts []driver.Stmt // by statement
	args  []driver.NamedValue
}

var _ runner = (*direct)(nil)

func (d *direct) prepared(id statement) (driver.Stmt, error) {
	if d.stmts == nil {
		d.stmts = make([]driver.Stmt, len(statements))
	}
	if s := d.stmts[id]; s != nil {
		return s, nil
	}
	s, err := d.dc.Prepare(statements[id])
	if err != nil {
		return nil, fmt.Errorf("prepare %q: %w", statements[id], err)
	}
	d.stmts[id] = s
	return s, nil
}

func (d *direct) bind(args []driver.Value) []driver.NamedValue {
	d.args = d.args[:0]
	for i, a := range args {
		d.args = append(d.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return d.args
}

func (d *direct) run(id statement, args []driver.Value) (driver.Result, error) {
	s, err := d.prepared(id)
	if err != nil {
		return nil, err
	}
	return s.(driver.StmtExecContext).ExecContext(context.Background(), d.bind(args))
}

func (d *direct) each(id statement, row func(v []driver.Value) error, args ...driver.Value) error {
	s, err := d.prepared(id)
	if err != nil {
		return err
	}
	return eachRow(s, d.bind(args), row)
}

func eachRow(s driver.Stmt, args []driver.NamedValue, row func(v []driver.Value) error) (err error) {
	return eachRowUntil(context.Background(), s, args, row)
}

// eachRowUntil is eachRow for a long query outside the writer.
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

func (d *direct) text(sql string) error {
	s, err := d.dc.Prepare(sql)
	if err != nil {
		return err
	}
	_, err = s.(driver.StmtExecContext).ExecContext(context.Background(), nil)
	return errors.Join(err, s.Close())
}

func (d *direct) rows(sql string, row func(v []driver.Value) error, args ...driver.Value) (err error) {
	s, err := d.dc.Prepare(sql)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return eachRow(s, d.bind(args), row)
}

func (d *direct) begin() error {
	_, err := d.run(beginImmediate, nil)
	return err
}

func (d *direct) commit() error {
	_, err := d.run(commitNow, nil)
	return err
}

// The transaction may be gone already; the statement's error is harmless then.
func (d *direct) rollback() { _, _ = d.run(rollbackNow, nil) }

// SQLite has no statement that tells whether a transaction is open, but it refuses to begin a
// second one.
func (d *direct) open() bool {
	if _, err := d.run(beginProbe, nil); err != nil {
		return true
	}
	d.rollback() // it was empty
	return false
}

func (d *direct) lend() (*sql.Tx, error) { return d.via.BeginTx(context.Background(), nil) }

func (d *direct) ended() {}

// database/sql may use the connection beside the caller, to close rows whose context has ended. Raw
// keeps it out.
func (d *direct) alone(statements func() error) error {
	return d.via.Raw(func(any) error { return statements() })
}

func (d *direct) finalize() error {
	var faults []error
	for i, s := range d.stmts {
		if s != nil {
			faults = append(faults, s.Close())
			d.stmts[i] = nil
		}
	}
	return errors.Join(faults...)
}
