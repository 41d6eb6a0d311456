package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// shopTable is the business table, in one file with the queue's.
const (
	shopTable = "CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, customer TEXT NOT NULL, cents INTEGER NOT NULL)"
	shopOrder = "INSERT INTO orders (customer, cents) VALUES (?, ?)"
)

// customer and cents are an order's columns.
func customer(n int) string { return fmt.Sprintf("customer-%d", n%1000) }
func cents(n int) int64     { return int64(n % 100_000) }

// load is a contender of a measure that consists of one call, repeated by concurrent callers.
type load struct {
	name, settings string
	role           role
	open           func(ctx context.Context, dir string) (loaded, error)
}

type loaded struct {
	do    func(ctx context.Context, n int) error
	close func() error
}

// addLoad adds l to the measure, with the given number of callers; each call counts as worth
// messages.
func (m *measure) addLoad(z sizes, callers, worth int, l load) {
	m.contenders = append(m.contenders, contender{
		name: l.name, settings: l.settings, role: l.role,
		run: func(_ context.Context, c cell) (v values, err error) {
			ctx := context.Background() // drivers start a goroutine per statement for a context that can end
			q, err := l.open(ctx, c.dir)
			if err != nil {
				return nil, err
			}
			defer func() { err = errors.Join(err, q.close()) }()
			r, err := rate(z, callers, func(n int) error { return q.do(ctx, n) })
			return values{"rate": r * float64(worth)}, err
		},
	})
}

// Joiner is a Queue whose messages can be enqueued in the caller's transaction, in the caller's
// database.
type Joiner interface {
	Queue
	Handle() *sql.DB
	EnqueueTx(ctx context.Context, tx *sql.Tx, payload []byte) error
}

// joining places orders through a peer, in the caller's transaction.
func joining(s source) load {
	return load{name: s.name, settings: s.settings, role: s.role, open: func(ctx context.Context, dir string) (loaded, error) {
		q, err := s.open(ctx, Setup{Dir: dir})
		if err != nil {
			return loaded{}, err
		}
		j, ok := q.(Joiner)
		if !ok {
			return loaded{}, errors.Join(fmt.Errorf("%T cannot join a transaction", q), q.Close())
		}
		if _, err := j.Handle().ExecContext(ctx, shopTable); err != nil {
			return loaded{}, errors.Join(fmt.Errorf("make orders: %w", err), q.Close())
		}
		return loaded{close: q.Close, do: func(ctx context.Context, n int) error {
			return placeOrder(ctx, j.Handle(), n, func(tx *sql.Tx) error { return j.EnqueueTx(ctx, tx, payload(n)) })
		}}, nil
	}}
}

// placeOrder is the same for all who join the caller's transaction.
func placeOrder(ctx context.Context, db *sql.DB, n int, enqueue func(tx *sql.Tx) error) error {
	return inTx(ctx, db, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, shopOrder, customer(n), cents(n)); err != nil {
			return fmt.Errorf("insert order: %w", err)
		}
		return enqueue(tx)
	})
}
