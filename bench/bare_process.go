package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
	"time"
)

// The inbox's statements for a new message. Its sender is source 1.
const (
	bareSource = `INSERT OR IGNORE INTO hf_source (source, name) VALUES (1, 'sender')`
	// id, hash, now, expires; 0 rows: the id is known
	bareArrive = `INSERT INTO hf_inbox (source, id, endpoint, hash, kept, received, processed, expires)
VALUES (1, ?1, 'Bench', ?2, 0, ?3, ?3, ?4) ON CONFLICT (source, id) DO NOTHING`
	// seq, response
	bareRespond = `UPDATE hf_inbox SET response = ?2 WHERE seq = ?1`

	bareMemory = int64(30 * 24 * time.Hour / time.Microsecond)
)

// bareProcess is the least that exactly-once needs: the id, the handler's row, the response, and
// one commit per call.
func bareProcess(batch int) load {
	return load{name: bareName, role: roleBare, open: func(_ context.Context, dir string) (loaded, error) {
		c, err := withOrders(dir)
		if err != nil {
			return loaded{}, err
		}
		if err := c.exec(bareSource); err != nil {
			return loaded{}, errors.Join(err, c.Close())
		}
		var mu sync.Mutex
		seq, hash := int64(0), make([]byte, 32)
		return loaded{close: c.Close, do: func(_ context.Context, n int) error {
			mu.Lock()
			defer mu.Unlock()
			return c.tx(func() error {
				for i := range batch {
					id, now := newID(), time.Now().UnixMicro()
					seq++
					if err := c.each(
						bareCall{bareArrive, []driver.Value{id[:], hash, now, now + bareMemory}},
						bareCall{shopOrder, []driver.Value{customer(n + i), cents(n + i)}},
						bareCall{bareRespond, []driver.Value{seq, nil}},
					); err != nil {
						return err
					}
				}
				return nil
			})
		}}, nil
	}}
}

// bareCall is a statement with its arguments.
type bareCall struct {
	query string
	args  []driver.Value
}

func (c *bareConn) each(calls ...bareCall) error {
	for _, k := range calls {
		if err := c.exec(k.query, k.args...); err != nil {
			return err
		}
	}
	return nil
}

func processByHand(batch int) load {
	return load{name: "by hand", settings: byHandSettings, role: rolePeer, open: func(ctx context.Context, dir string) (loaded, error) {
		h, err := openByHand(ctx, modernc(), dir, bareArrive, shopOrder, bareRespond)
		if err != nil {
			return loaded{}, err
		}
		if _, err := h.db.ExecContext(ctx, bareSource); err != nil {
			return loaded{}, errors.Join(fmt.Errorf("make sender: %w", err), h.Close())
		}
		hash := make([]byte, 32)
		return loaded{close: h.Close, do: func(ctx context.Context, n int) error {
			return inTx(ctx, h.db, func(tx *sql.Tx) error {
				for i := range batch {
					id, now := newID(), time.Now().UnixMicro()
					seq, err := h.exec(ctx, tx, 0, id[:], hash, now, now+bareMemory)
					if err != nil {
						return err
					}
					if _, err := h.exec(ctx, tx, 1, customer(n+i), cents(n+i)); err != nil {
						return err
					}
					if _, err := h.exec(ctx, tx, 2, seq, nil); err != nil {
						return err
					}
				}
				return nil
			})
		}}, nil
	}}
}
