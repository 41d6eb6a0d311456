package main

import (
	"context"
	"database/sql/driver"
	"fmt"
	"sync"
	"time"
)

// bareDrain works off a backlog: it reads a page of due rows, passes them on, and marks them in one
// transaction.
type bareDrain struct {
	conn *bareConn
	page int
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu   sync.Mutex
	left int
	err  error
}

func bareDrainer(page int) source {
	return source{
		name: fmt.Sprintf("bare drain %d", page), role: roleBare, files: "bare",
		settings: fmt.Sprintf("pages of %d rows; the better of the bare drains is the ceiling", page),
		open: func(ctx context.Context, s Setup) (Queue, error) {
			conn, err := openBare(s.Dir)
			if err != nil {
				return nil, err
			}
			n, err := conn.number(bareCount)
			if err != nil {
				return nil, err
			}
			work, stop := context.WithCancel(ctx)
			d := &bareDrain{conn: conn, page: page, stop: stop, left: int(n)}
			d.wg.Go(func() { d.run(work, s.Deliver) })
			return d, nil
		},
	}
}

func (d *bareDrain) run(ctx context.Context, deliver Deliver) {
	var seqs []int64
	for ctx.Err() == nil {
		seqs = seqs[:0]
		err := d.conn.query(barePage, func(row []driver.Value) {
			if deliver(ctx, 0, row[1].([]byte)) == nil {
				seqs = append(seqs, row[0].(int64))
			}
		}, int64(0), time.Now().UnixMicro(), int64(d.page))
		if err == nil && len(seqs) > 0 {
			err = d.settle(seqs)
		}
		d.mu.Lock()
		d.left -= len(seqs)
		d.err = err
		d.mu.Unlock()
		if err != nil || len(seqs) == 0 {
			return
		}
	}
}

func (d *bareDrain) settle(seqs []int64) error {
	now := time.Now().UnixMicro()
	return d.conn.tx(func() error {
		for _, s := range seqs {
			if err := d.conn.exec(bareSettle, s, now); err != nil {
				return err
			}
		}
		return nil
	})
}

func (d *bareDrain) Enqueue(context.Context, int, []byte) error {
	return fmt.Errorf("the bare drain takes no messages")
}

func (d *bareDrain) Unsettled(context.Context) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.left, d.err
}

func (d *bareDrain) Close() error {
	d.stop()
	d.wg.Wait()
	return d.conn.Close()
}

// fillBare makes a backlog for one lane.
func fillBare(dir string, lane int64, count int) error {
	c, err := openBare(dir)
	if err != nil {
		return err
	}
	defer c.Close()
	return c.fill(lane, statePending, count, payload)
}
