package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// pgRiverConnections limits River's pool: 8 and 64 were not faster.
const pgRiverConnections = 16

func pgRiverDefault() source {
	return source{
		name: "river on PostgreSQL", role: rolePeer, open: pgRiverOpener(riverOptions{workers: 100}),
		settings: fmt.Sprintf("v0.51.2 with riverpgxv5, %d connections; defaults: 100 workers as in its examples, fetch cool-down 100 ms, poll every 1 s; enqueue: one Insert for each message",
			pgRiverConnections),
	}
}

func pgRiverTuned() source {
	return source{
		name: "river on PostgreSQL, tuned", role: rolePeer, files: "river on PostgreSQL",
		open:     pgRiverOpener(riverOptions{workers: 1000, cooldown: 2 * time.Millisecond, poll: 20 * time.Millisecond}),
		settings: "as river on PostgreSQL, but 1000 workers, fetch cool-down 2 ms, poll every 20 ms",
	}
}

type pgRiver struct {
	pool    *pgxpool.Pool
	c       *river.Client[pgx.Tx]
	started bool
}

func pgRiverOpener(o riverOptions) Opener {
	return func(ctx context.Context, s Setup) (Queue, error) {
		pool, err := openPool(ctx, s.DSN, pgRiverConnections)
		if err != nil {
			return nil, err
		}
		q := &pgRiver{pool: pool, started: s.Deliver != nil}
		if err := q.start(ctx, o, s); err != nil {
			pool.Close()
			return nil, err
		}
		return q, nil
	}
}

func (q *pgRiver) start(ctx context.Context, o riverOptions, s Setup) error {
	if err := q.migrate(ctx); err != nil {
		return err
	}
	w := river.NewWorkers()
	river.AddWorker(w, &riverWorker{deliver: s.Deliver})
	c := &river.Config{
		Logger: slog.New(slog.DiscardHandler), Workers: w,
		FetchCooldown: o.cooldown, FetchPollInterval: o.poll,
	}
	if q.started {
		c.Queues = map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: o.workers}}
	}
	var err error
	if q.c, err = river.NewClient(riverpgxv5.New(q.pool), c); err != nil {
		return fmt.Errorf("make river's client: %w", err)
	}
	if q.started {
		if err := q.c.Start(context.WithoutCancel(ctx)); err != nil {
			return fmt.Errorf("start river: %w", err)
		}
	}
	return nil
}

func (q *pgRiver) migrate(ctx context.Context) error {
	there := false
	if err := q.pool.QueryRow(ctx, "SELECT to_regclass('river_job') IS NOT NULL").Scan(&there); err != nil || there {
		return err
	}
	m, err := rivermigrate.New(riverpgxv5.New(q.pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("make river's migrator: %w", err)
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("make river's schema: %w", err)
	}
	return nil
}

func (q *pgRiver) Enqueue(ctx context.Context, _ int, b []byte) error {
	_, err := q.c.Insert(ctx, riverArgs{b}, nil)
	return err
}

func (q *pgRiver) Fill(ctx context.Context, _, count int, payload func(int) []byte) error {
	return inChunks(count, func(from, to int) error {
		var params []river.InsertManyParams
		for i := from; i < to; i++ {
			params = append(params, river.InsertManyParams{Args: riverArgs{payload(i)}})
		}
		_, err := q.c.InsertManyFast(ctx, params)
		return err
	})
}

func (q *pgRiver) Unsettled(ctx context.Context) (n int, err error) {
	err = q.pool.QueryRow(ctx,
		"SELECT count(*) FROM river_job WHERE state IN ('available', 'running', 'retryable', 'scheduled', 'pending')").Scan(&n)
	return n, err
}

func (q *pgRiver) Close() error {
	var err error
	if q.started {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err = q.c.StopAndCancel(ctx)
	}
	q.pool.Close()
	return err
}
