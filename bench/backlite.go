package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mikestefanello/backlite"
)

// backliteOptions are the settings of the library that vary.
type backliteOptions struct {
	workers     int
	connections int // 0: no bound
}

func backliteDefault() source {
	return source{
		name: "backlite", role: rolePeer, open: backliteOpener(backliteOptions{workers: 10}),
		settings: "v0.6.0, as its README has it: 10 workers, pool without a bound, nothing retained",
	}
}

// backliteTuned has one connection, since several writers wait for each other by polling. It has
// many workers, since its dispatcher sleeps 100 ms when all are busy.
func backliteTuned() source {
	return source{
		name: "backlite tuned", files: "backlite", role: rolePeer, open: backliteOpener(backliteOptions{workers: 1000, connections: 1}),
		settings: "as backlite, but 1000 workers, 1 connection",
	}
}

// backliteTask is a task with its own JSON. The library finds the settings of a queue by the zero
// value of its task.
type backliteTask struct{ body json.RawMessage }

func (backliteTask) Config() backlite.QueueConfig {
	return backlite.QueueConfig{Name: "bench", MaxAttempts: 3, Timeout: time.Minute, Backoff: time.Second}
}

func (t backliteTask) MarshalJSON() ([]byte, error) { return t.body, nil }

func (t *backliteTask) UnmarshalJSON(b []byte) error {
	t.body = append(json.RawMessage(nil), b...)
	return nil
}

type backliteQueue struct {
	db   *sql.DB
	c    *backlite.Client
	stop context.CancelFunc
}

func backliteOpener(o backliteOptions) Opener {
	return func(ctx context.Context, s Setup) (Queue, error) {
		db, err := openPeer(s.Dir, o.connections)
		if err != nil {
			return nil, err
		}
		c, err := backlite.NewClient(backlite.ClientConfig{
			DB: db, NumWorkers: o.workers, ReleaseAfter: 10 * time.Minute, CleanupInterval: time.Hour,
		})
		if err != nil {
			return nil, fmt.Errorf("make backlite's client: %w", err)
		}
		if err := c.Install(); err != nil {
			return nil, fmt.Errorf("make backlite's schema: %w", err)
		}
		work, stop := context.WithCancel(context.WithoutCancel(ctx))
		if s.Deliver != nil {
			c.Register(backlite.NewQueue(func(ctx context.Context, t backliteTask) error {
				return s.Deliver(ctx, 0, t.body)
			}))
			c.Start(work)
		}
		return &backliteQueue{db: db, c: c, stop: stop}, nil
	}
}

func (q *backliteQueue) Enqueue(ctx context.Context, _ int, b []byte) error {
	_, err := q.c.Add(backliteTask{b}).Ctx(ctx).Save()
	return err
}

func (q *backliteQueue) Handle() *sql.DB { return q.db }

func (q *backliteQueue) EnqueueTx(ctx context.Context, tx *sql.Tx, b []byte) error {
	_, err := q.c.Add(backliteTask{b}).Ctx(ctx).Tx(tx).Save()
	return err
}

// Fill saves one by one inside one transaction per chunk.
func (q *backliteQueue) Fill(ctx context.Context, _, count int, payload func(int) []byte) error {
	return inChunks(count, func(from, to int) error {
		return inTx(ctx, q.db, func(tx *sql.Tx) error {
			for i := from; i < to; i++ {
				if _, err := q.c.Add(backliteTask{payload(i)}).Ctx(ctx).Tx(tx).Save(); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func (q *backliteQueue) Unsettled(ctx context.Context) (n int, err error) {
	err = q.db.QueryRowContext(ctx, "SELECT count(*) FROM backlite_tasks").Scan(&n)
	return n, err
}

func (q *backliteQueue) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	// With a backlog left, it may wait for workers that have ended already. The cell is measured by
	// then, so a hard stop follows.
	_ = q.c.Stop(ctx)
	q.stop()
	return q.db.Close()
}
