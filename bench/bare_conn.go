package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // registers the driver
)

// bareConn is one connection at the driver's level, for one goroutine at a time. It prepares a
// statement at its first use.
type bareConn struct {
	conn  driver.Conn
	stmts map[string]driver.Stmt
	args  []driver.NamedValue
}

// openBare makes the file with the library, for its schema, and then does not use the library.
func openBare(dir string) (*bareConn, error) {
	db, err := openStore(context.Background(), dir)
	if err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	return openBareFile(filepath.Join(dir, "holdfast.db"))
}

func openBareFile(path string) (*bareConn, error) {
	db, err := sql.Open("sqlite", "") // opens nothing; leads to the driver
	if err != nil {
		return nil, fmt.Errorf("find driver: %w", err)
	}
	defer db.Close()
	conn, err := db.Driver().Open(dsn(path))
	if err != nil {
		return nil, fmt.Errorf("open bare file: %w", err)
	}
	c := &bareConn{conn: conn, stmts: map[string]driver.Stmt{}}
	for n := range 2 {
		text := fmt.Sprintf(`INSERT OR IGNORE INTO hf_lane (lane, destination) VALUES (%[1]d, '%[2]s');
			INSERT OR IGNORE INTO hf_route (route, lane, source, kind, endpoint) VALUES (%[1]d, %[1]d, 'bench', 'Signal', 'Bench')`, n+1, destination(n))
		if _, err := conn.(driver.ExecerContext).ExecContext(context.Background(), text, nil); err != nil {
			return nil, errors.Join(fmt.Errorf("make bare lanes: %w", err), conn.Close())
		}
	}
	return c, nil
}

func (c *bareConn) prepare(query string, args []driver.Value) (driver.Stmt, error) {
	s, ok := c.stmts[query]
	if !ok {
		var err error
		if s, err = c.conn.Prepare(query); err != nil {
			return nil, fmt.Errorf("prepare %.30q: %w", query, err)
		}
		c.stmts[query] = s
	}
	c.args = c.args[:0]
	for i, a := range args {
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return s, nil
}

func (c *bareConn) exec(query string, args ...driver.Value) error {
	s, err := c.prepare(query, args)
	if err != nil {
		return err
	}
	if _, err := s.(driver.StmtExecContext).ExecContext(context.Background(), c.args); err != nil {
		return fmt.Errorf("run %.30q: %w", query, err)
	}
	return nil
}

// query calls each for every row; it reuses the row's slice.
func (c *bareConn) query(query string, each func(row []driver.Value), args ...driver.Value) (err error) {
	s, err := c.prepare(query, args)
	if err != nil {
		return err
	}
	rows, err := s.(driver.StmtQueryContext).QueryContext(context.Background(), c.args)
	if err != nil {
		return fmt.Errorf("run %.30q: %w", query, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	row := make([]driver.Value, len(rows.Columns()))
	for {
		switch err := rows.Next(row); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read row: %w", err)
		}
		each(row)
	}
}

// number runs a query that yields one integer.
func (c *bareConn) number(query string, args ...driver.Value) (n int64, err error) {
	err = c.query(query, func(row []driver.Value) { n, _ = row[0].(int64) }, args...)
	return n, err
}

// tx runs do in one durable transaction.
func (c *bareConn) tx(do func() error) error {
	if err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if err := do(); err != nil {
		return errors.Join(err, c.exec("ROLLBACK"))
	}
	return c.exec("COMMIT")
}

// insert writes one message and its body.
func (c *bareConn) insert(seq int64, id [16]byte, lane, state, now int64, payload []byte) error {
	if err := c.exec(bareInsert, seq, id[:], lane, state, now); err != nil {
		return err
	}
	return c.exec(bareInsertBody, seq, payload)
}

// fill adds count messages in large transactions.
func (c *bareConn) fill(lane, state int64, count int, payload func(int) []byte) error {
	seq, err := c.number(bareLast)
	if err != nil {
		return err
	}
	return inChunks(count, func(from, to int) error {
		now := time.Now().UnixMicro()
		return c.tx(func() error {
			for i := from; i < to; i++ {
				seq++
				if err := c.insert(seq, newID(), lane, state, now, payload(i)); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func (c *bareConn) Close() error {
	var err error
	for _, s := range c.stmts {
		err = errors.Join(err, s.Close())
	}
	return errors.Join(err, c.conn.Close())
}

// newID returns a UUID, version 7.
func newID() (id [16]byte) {
	_, _ = rand.Read(id[6:]) // never fails
	ms := uint64(time.Now().UnixMilli())
	binary.BigEndian.PutUint32(id[:], uint32(ms>>16))
	binary.BigEndian.PutUint16(id[4:], uint16(ms))
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return id
}
