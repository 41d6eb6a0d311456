package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
)

// riverOptions are the settings of the library that vary.
type riverOptions struct {
	workers        int
	cooldown, poll time.Duration // 0: its defaults
}

func riverDefault() source {
	return source{
		name: "river", role: rolePeer, open: riverOpener(riverOptions{workers: 100}),
		settings: "v0.51.2 with riversqlite, 1 connection as its driver advises; defaults: 100 workers as in its examples, fetch cool-down 100 ms, poll every 1 s",
	}
}

func riverTuned() source {
	return source{
		name: "river tuned", role: rolePeer, files: "river",
		open:     riverOpener(riverOptions{workers: 2000, cooldown: 2 * time.Millisecond, poll: 20 * time.Millisecond}),
		settings: "as river, but 2000 workers, fetch cool-down 2 ms, poll every 20 ms, as its own bench command sets them",
	}
}

// riverArgs are arguments with their own JSON.
type riverArgs struct{ body json.RawMessage }

func (riverArgs) Kind() string { return "bench" }

func (a riverArgs) MarshalJSON() ([]byte, error) { return a.body, nil }

func (a *riverArgs) UnmarshalJSON(b []byte) error {
	a.body = append(json.RawMessage(nil), b...)
	return nil
}

type riverWorker struct {
	river.WorkerDefaults[riverArgs]
	deliver Deliver
}

func (w *riverWorker) Work(ctx context.Context, j *river.Job[riverArgs]) error {
	return w.deliver(ctx, 0, j.Args.body)
}

type riverQueue struct {
	db      *sql.DB
	c       *river.Client[*sql.Tx]
	started bool
}

func riverOpener(o riverOptions) Opener {
	return func(ctx context.Context, s Setup) (Queue, error) {
		db, err := openPeer(s.Dir, 1)
		if err != nil {
			return nil, err
		}
		if err := riverMigrate(ctx, db); err != nil {
			return nil, err
		}
		w := river.NewWorkers()
		river.AddWorker(w, &riverWorker{deliver: s.Deliver})
		c := &river.Config{
			Logger: slog.New(slog.DiscardHandler), Workers: w,
			FetchCooldown: o.cooldown, FetchPollInterval: o.poll,
		}
		if s.Deliver != nil {
			c.Queues = map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: o.workers}}
		}
		q := &riverQueue{db: db, started: s.Deliver != nil}
		if q.c, err = river.NewClient(riversqlite.New(db), c); err != nil {
			return nil, fmt.Errorf("make river's client: %w", err)
		}
		if q.started {
			if err := q.c.Start(context.WithoutCancel(ctx)); err != nil {
				return nil, fmt.Errorf("start river: %w", err)
			}
		}
		return q, nil
	}
}

func riverMigrate(ctx context.Context, db *sql.DB) error {
	if ok, err := has(ctx, db, "river_job"); ok || err != nil {
		return err
	}
	m, err := rivermigrate.New(riversqlite.New(db), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("make river's migrator: %w", err)
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("make river's schema: %w", err)
	}
	return nil
}

func (q *riverQueue) Enqueue(ctx context.Context, _ int, b []byte) error {
	_, err := q.c.Insert(ctx, riverArgs{b}, nil)
	return err
}

func (q *riverQueue) Handle() *sql.DB { return q.db }

func (q *riverQueue) EnqueueTx(ctx context.Context, tx *sql.Tx, b []byte) error {
	_, err := q.c.InsertTx(ctx, tx, riverArgs{b}, nil)
	return err
}

func (q *riverQueue) Fill(ctx context.Context, _, count int, payload func(int) []byte) error {
	return inChunks(count, func(from, to int) error {
		var params []river.InsertManyParams
		for i := from; i < to; i++ {
			params = append(params, river.InsertManyParams{Args: riverArgs{payload(i)}})
		}
		_, err := q.c.InsertManyFast(ctx, params)
		return err
	})
}

func (q *riverQueue) Unsettled(ctx context.Context) (n int, err error) {
	err = q.db.QueryRowContext(ctx,
		"SELECT count(*) FROM river_job WHERE state IN ('available', 'running', 'retryable', 'scheduled', 'pending')").Scan(&n)
	return n, err
}

func (q *riverQueue) Close() error {
	var err error
	if q.started {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err = q.c.StopAndCancel(ctx)
	}
	return errors.Join(err, q.db.Close())
}
