package sqlite_test

import (
	"context"
	"database/sql/driver"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
)

// tap stands between the store and the driver: before and after see every
// statement that the writer's connection runs, and an error of theirs is the
// statement's. answer replaces the rows of a query, one row of one column, on
// every connection.
type tap struct {
	mu     sync.Mutex
	before func(sql string) error
	after  func(sql string) error
	answer map[string]string
}

func (p *tap) set(before, after func(sql string) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before, p.after = before, after
}

func (p *tap) run(sql string, do func() error) error {
	p.mu.Lock()
	before, after := p.before, p.after
	p.mu.Unlock()
	if before != nil {
		if err := before(sql); err != nil {
			return err
		}
	}
	if err := do(); err != nil {
		return err
	}
	if after != nil {
		return after(sql)
	}
	return nil
}

func (p *tap) wrap(c driver.Conn, writer bool) driver.Conn {
	if !writer {
		return &tapConn{c, &tap{answer: p.answer}}
	}
	return &tapConn{c, p}
}

type tapConn struct {
	driver.Conn
	tap *tap
}

func (c *tapConn) Prepare(sql string) (driver.Stmt, error) {
	s, err := c.Conn.Prepare(sql)
	return &tapStmt{s, sql, c.tap}, err
}

func (c *tapConn) BeginTx(ctx context.Context, o driver.TxOptions) (tx driver.Tx, err error) {
	err = c.tap.run("BEGIN IMMEDIATE", func() error {
		tx, err = c.Conn.(driver.ConnBeginTx).BeginTx(ctx, o)
		return err
	})
	return &tapTx{tx, c.tap}, err
}

func (c *tapConn) ExecContext(ctx context.Context, sql string, args []driver.NamedValue) (r driver.Result, err error) {
	err = c.tap.run(sql, func() error {
		r, err = c.Conn.(driver.ExecerContext).ExecContext(ctx, sql, args)
		return err
	})
	return r, err
}

func (c *tapConn) QueryContext(ctx context.Context, sql string, args []driver.NamedValue) (r driver.Rows, err error) {
	err = c.tap.run(sql, func() error {
		r, err = c.Conn.(driver.QueryerContext).QueryContext(ctx, sql, args)
		return err
	})
	return r, err
}

type tapTx struct {
	driver.Tx
	tap *tap
}

func (t *tapTx) Commit() error { return t.tap.run("COMMIT", t.Tx.Commit) }

type tapStmt struct {
	driver.Stmt
	sql string
	tap *tap
}

func (s *tapStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (r driver.Result, err error) {
	err = s.tap.run(s.sql, func() error {
		r, err = s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
		return err
	})
	return r, err
}

func (s *tapStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (r driver.Rows, err error) {
	if a, ok := s.tap.answer[s.sql]; ok {
		return &oneRow{value: a}, nil
	}
	err = s.tap.run(s.sql, func() error {
		r, err = s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
		return err
	})
	return r, err
}

type oneRow struct {
	value string
	done  bool
}

func (r *oneRow) Columns() []string { return []string{"value"} }
func (r *oneRow) Close() error      { return nil }

func (r *oneRow) Next(v []driver.Value) error {
	if r.done {
		return io.EOF
	}
	v[0], r.done = r.value, true
	return nil
}

// sqliteError is an error with a code of SQLite, as a driver reports it.
type sqliteError int

func (e sqliteError) Error() string { return fmt.Sprintf("injected error %d", int(e)) }
func (e sqliteError) Code() int     { return int(e) }

const (
	errBusy    sqliteError = 5
	errIOSync  sqliteError = 10 | 4<<8
	errCorrupt sqliteError = 11
	errFull    sqliteError = 13
)

// nth fails the nth statement that begins with one of the prefixes, from 1 on.
func nth(n int, fault error, prefixes ...string) func(sql string) error {
	var mu sync.Mutex
	return func(sql string) error {
		mu.Lock()
		defer mu.Unlock()
		for _, p := range prefixes {
			if strings.HasPrefix(sql, p) {
				if n--; n == 0 {
					return fault
				}
				return nil
			}
		}
		return nil
	}
}

// fail makes the nth statement from now on fail, and tells whether it came to that.
func (p *tap) fail(n int) *atomic.Bool {
	failed, fault := &atomic.Bool{}, nth(n, errIOSync, "")
	p.set(func(sql string) error {
		err := fault(sql)
		if err != nil {
			failed.Store(true)
		}
		return err
	}, nil)
	return failed
}
