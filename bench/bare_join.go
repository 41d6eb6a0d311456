package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"
)

const byHandSettings = "the same statements, prepared, written by hand for database/sql, 1 connection: no checks, names or wake-up"

// withOrders makes the file with the library, for its schema, together with the table of orders.
func withOrders(dir string) (*bareConn, error) {
	c, err := openBare(dir)
	if err != nil {
		return nil, err
	}
	if err := c.exec(shopTable); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// bareJoin is the least that one transaction for each order needs: five
// statements on the driver's own connection.
func bareJoin() load {
	return load{name: bareName, role: roleBare, open: func(_ context.Context, dir string) (loaded, error) {
		c, err := withOrders(dir)
		if err != nil {
			return loaded{}, err
		}
		var mu sync.Mutex
		seq := int64(0)
		return loaded{close: c.Close, do: func(_ context.Context, n int) error {
			id, text := newID(), payload(n)
			mu.Lock()
			defer mu.Unlock()
			return c.tx(func() error {
				seq++
				if err := c.exec(shopOrder, customer(n), cents(n)); err != nil {
					return err
				}
				return c.insert(seq, id, 0, statePending, time.Now().UnixMicro(), text)
			})
		}}, nil
	}}
}

// byHand is what a caller writes without a library: prepared statements of database/sql.
type byHand struct {
	db         *sql.DB
	statements []*sql.Stmt
}

func openByHand(ctx context.Context, d sqlDriver, dir string, queries ...string) (*byHand, error) {
	c, err := withOrders(dir)
	if err != nil {
		return nil, err
	}
	if err := c.Close(); err != nil {
		return nil, err
	}
	h := &byHand{}
	if h.db, err = d.open(filepath.Join(dir, "holdfast.db"), 1); err != nil {
		return nil, err
	}
	for _, q := range queries {
		s, err := h.db.PrepareContext(ctx, q)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("prepare %.30q: %w", q, err), h.Close())
		}
		h.statements = append(h.statements, s)
	}
	return h, nil
}

func (h *byHand) exec(ctx context.Context, tx *sql.Tx, statement int, args ...any) (key int64, err error) {
	r, err := tx.StmtContext(ctx, h.statements[statement]).ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return r.LastInsertId()
}

func (h *byHand) Close() error {
	var faults []error
	for _, s := range h.statements {
		faults = append(faults, s.Close())
	}
	return errors.Join(append(faults, h.db.Close())...)
}

func joinByHand(d sqlDriver, r role) load {
	const insertMessage = "INSERT INTO hf_message (id, route, lane, due, created) VALUES (?1, 1, 1, ?2, ?2)"
	return load{name: "by hand" + d.title, settings: byHandSettings, role: r, open: func(ctx context.Context, dir string) (loaded, error) {
		h, err := openByHand(ctx, d, dir, shopOrder, insertMessage, bareInsertBody)
		if err != nil {
			return loaded{}, err
		}
		return loaded{close: h.Close, do: func(ctx context.Context, n int) error {
			id, text := newID(), payload(n)
			return inTx(ctx, h.db, func(tx *sql.Tx) error {
				if _, err := h.exec(ctx, tx, 0, customer(n), cents(n)); err != nil {
					return err
				}
				seq, err := h.exec(ctx, tx, 1, id[:], time.Now().UnixMicro())
				if err != nil {
					return err
				}
				_, err = h.exec(ctx, tx, 2, seq, text)
				return err
			})
		}}, nil
	}}
}
