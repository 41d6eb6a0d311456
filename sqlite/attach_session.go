package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"
)

// shared runs statements through database/sql, on a connection of the caller's pool or in a
// transaction of the caller. It does not keep the connection, and works with every driver.
type shared struct {
	via      *sql.Conn     // nil: tx is the caller's own
	tx       *sql.Tx       // the open transaction; nil: none is open
	prepared []*sql.Stmt   // by statement; database/sql prepares them once per connection
	inTx     []*sql.Stmt   // the same for tx
	patience time.Duration // how long to wait for the right to write
	ahead    bool          // a transaction was begun for the next caller
}

var _ runner = (*shared)(nil)

// stmt returns the statement for the open transaction, or nil if it is not prepared.
func (s *shared) stmt(id statement) *sql.Stmt {
	if s.prepared == nil || s.prepared[id] == nil {
		return nil
	}
	if s.inTx == nil {
		s.inTx = make([]*sql.Stmt, len(statements))
	}
	if st := s.inTx[id]; st != nil {
		return st
	}
	s.inTx[id] = s.tx.StmtContext(context.Background(), s.prepared[id])
	return s.inTx[id]
}

func anys(args []driver.Value) []any {
	list := make([]any, len(args))
	for i, a := range args {
		list[i] = a
	}
	return list
}

func (s *shared) run(id statement, args []driver.Value) (driver.Result, error) {
	ctx := context.Background()
	if s.tx == nil {
		return s.via.ExecContext(ctx, statements[id], anys(args)...)
	}
	if st := s.stmt(id); st != nil { //nolint:sqlclosecheck // the DB closes it
		return st.ExecContext(ctx, anys(args)...)
	}
	return s.tx.ExecContext(ctx, statements[id], anys(args)...)
}

func (s *shared) each(id statement, row func(v []driver.Value) error, args ...driver.Value) error {
	if s.tx != nil {
		if st := s.stmt(id); st != nil { //nolint:sqlclosecheck // the DB closes it
			rows, err := st.QueryContext(context.Background(), anys(args)...)
			if err != nil {
				return err
			}
			return eachScanned(rows, row)
		}
	}
	return s.rows(statements[id], row, args...)
}

func eachScanned(rows *sql.Rows, row func(v []driver.Value) error) (err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	v, dest := make([]driver.Value, len(names)), make([]any, len(names))
	for i := range v {
		dest[i] = (*any)(&v[i])
	}
	for rows.Next() {
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		switch err := row(v); {
		case errors.Is(err, errStop):
			return nil
		case err != nil:
			return err
		}
	}
	return rows.Err()
}

func (s *shared) text(sql string) (err error) {
	if s.tx != nil {
		_, err = s.tx.ExecContext(context.Background(), sql)
	} else {
		_, err = s.via.ExecContext(context.Background(), sql)
	}
	return err
}

func (s *shared) rows(text string, row func(v []driver.Value) error, args ...driver.Value) (err error) {
	var rows *sql.Rows
	if s.tx != nil {
		rows, err = s.tx.QueryContext(context.Background(), text, anys(args)...)
	} else {
		rows, err = s.via.QueryContext(context.Background(), text, anys(args)...)
	}
	if err != nil {
		return err
	}
	return eachScanned(rows, row)
}

// begin makes a write the first statement of its transaction, however the caller's handle begins
// transactions. A read before it would tie the transaction to a snapshot, which another commit
// makes too old to write (SQLITE_BUSY_SNAPSHOT).
func (s *shared) begin() error {
	if s.ahead {
		s.ahead = false
		return nil
	}
	return s.patiently(s.tryBegin, nil)
}

// beginAhead begins a transaction for the next caller, as long as somebody waits for it. Another
// connection may have the right to write for long.
func (s *shared) beginAhead(wanted func() bool) error {
	err := s.patiently(s.tryBegin, wanted)
	s.ahead = err == nil
	return err
}

// unused ends a transaction that was begun ahead, if nobody has come.
func (s *shared) unused() {
	if s.ahead {
		s.rollback()
	}
}

// errUnwanted means that nobody waits for the right to write any more.
var errUnwanted = errors.New("nobody waits for the right to write")

// patiently repeats begin while another connection is in its way, since not every handle has a
// busy_timeout. It ends early when wanted returns false. A nil wanted means always.
func (s *shared) patiently(begin func() error, wanted func() bool) error {
	began := time.Now() // each try also waits for the handle's busy_timeout
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		err := begin()
		if err == nil || !isBusy(err) {
			return err
		}
		if wanted != nil && !wanted() {
			return errUnwanted
		}
		if time.Since(began) > s.patience {
			return fmt.Errorf("another connection has held the right to write for %s: %w", s.patience, err)
		}
		t := time.NewTimer(wait)
		<-t.C
	}
}

func (s *shared) tryBegin() (err error) {
	if s.tx, err = s.via.BeginTx(context.Background(), nil); err != nil {
		s.tx = nil
		return err
	}
	clear(s.inTx)
	if _, err = s.run(takeLock, nil); err != nil {
		s.rollback()
	}
	return err
}

// beginRead begins a transaction that reads one snapshot, with SQL text. Not every driver supports
// sql.TxOptions.ReadOnly. With _txlock=immediate a transaction would take the right to write, ten
// times a second, and wait for its holder.
func (s *shared) beginRead() error {
	return s.text(statements[beginProbe])
}

func (s *shared) commit() error {
	err := s.tx.Commit()
	if err != nil {
		s.rollback()
	}
	s.tx = nil
	return err
}

func (s *shared) rollback() {
	s.ahead = false
	if s.tx != nil {
		_ = s.tx.Rollback()
		s.tx = nil
	}
	// After a failed commit database/sql takes the transaction for ended, but in SQLite it may be
	// open. A connection must not return to its pool with an open transaction.
	_, _ = s.via.ExecContext(context.Background(), statements[rollbackNow])
}

func (s *shared) open() bool {
	switch _, err := s.run(beginProbe, nil); {
	case errors.Is(err, sql.ErrTxDone), errors.Is(err, sql.ErrConnDone), errors.Is(err, driver.ErrBadConn):
		return false
	case err != nil:
		return true
	}
	_, _ = s.tx.ExecContext(context.Background(), statements[rollbackNow])
	return false
}

func (s *shared) lend() (*sql.Tx, error) {
	err := s.begin()
	return s.tx, err
}

func (s *shared) ended() { s.tx = nil }

func (s *shared) alone(statements func() error) error { return statements() }

// finalize leaves the statements to the DB, which prepared them.
func (s *shared) finalize() error { return nil }
