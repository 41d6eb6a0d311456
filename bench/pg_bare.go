package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The bare loops on PostgreSQL: one table with the columns of a hot row and its body, and the least
// that an outbox in it must do.
const (
	pgBareSchema = `CREATE TABLE IF NOT EXISTS bare_message (
  seq      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id       bytea NOT NULL UNIQUE,
  route    integer NOT NULL DEFAULT 1,
  lane     integer NOT NULL,
  state    smallint NOT NULL DEFAULT 0,
  due      bigint NOT NULL,
  created  bigint NOT NULL,
  expires  bigint,
  failures integer NOT NULL DEFAULT 0,
  tries    integer NOT NULL DEFAULT 0,
  cycle    integer NOT NULL DEFAULT 1,
  settled  bigint,
  owner    bigint,
  claim    bigint,
  reason   text,
  okey     text,
  payload  bytea NOT NULL,
  headers  text,
  corr     text,
  retry    text
);
CREATE INDEX IF NOT EXISTS bare_message_due ON bare_message (lane, due) WHERE state = 0`

	// ids, lanes, payloads, now
	pgBareInsert = `INSERT INTO bare_message (id, lane, due, created, payload)
SELECT id, lane, $4, $4, payload FROM unnest($1::bytea[], $2::integer[], $3::bytea[]) AS m (id, lane, payload)`

	// now, limit, until
	pgBareLease = `UPDATE bare_message SET due = $3, owner = 1, claim = $1, tries = tries + 1
WHERE seq = ANY (ARRAY(SELECT seq FROM bare_message WHERE state = 0 AND lane = 0 AND due <= $1 ORDER BY due LIMIT $2 FOR UPDATE SKIP LOCKED))
RETURNING seq, payload`

	pgBareDelete = `DELETE FROM bare_message WHERE seq = ANY ($1)`
)

// pgBareOptions say how many connections do what.
type pgBareOptions struct {
	writers  int // unnest group commit
	drainers int // lease, then delete
	page     int // rows per lease
	atOnce   int // deliveries of a page at a time; zero: one
}

// pgBare is the bare loop.
type pgBare struct {
	o       pgBareOptions
	pool    *pgxpool.Pool
	deliver Deliver
	claimed func(time.Duration)
	wake    chan struct{}
	stop    chan struct{}
	wg      sync.WaitGroup

	mu       sync.Mutex
	arriving *bareBatch
	full     []*bareBatch
	err      error // of a drainer
}

// pgBareWriter is the ceiling of enqueueing.
func pgBareWriter(writers int) source {
	return source{
		name: fmt.Sprintf("bare unnest %d", writers), role: roleBare, open: openPGBare(pgBareOptions{writers: writers}),
		settings: fmt.Sprintf("group commit of up to %d rows by unnest, %d connections; the better of them is the ceiling", bareCap, writers),
	}
}

// pgBareDrainer is the ceiling of delivering.
func pgBareDrainer(drainers, page int) source {
	return source{
		name: fmt.Sprintf("bare lease %dx%d", drainers, page), role: roleBare, files: "bare",
		open: openPGBare(pgBareOptions{writers: 1, drainers: drainers, page: page}),
		settings: fmt.Sprintf("UPDATE of %d rows with SKIP LOCKED and RETURNING, then DELETE; %d connections; the better of them is the ceiling",
			page, drainers),
	}
}

func openPGBare(o pgBareOptions) Opener {
	return func(ctx context.Context, s Setup) (Queue, error) {
		pool, err := openPool(ctx, s.DSN, o.writers+o.drainers+1)
		if err != nil {
			return nil, err
		}
		if _, err := pool.Exec(ctx, pgBareSchema); err != nil {
			pool.Close()
			return nil, fmt.Errorf("make bare schema: %w", err)
		}
		b := &pgBare{
			o: o, pool: pool, deliver: s.Deliver, claimed: s.Claimed,
			wake: make(chan struct{}, o.writers), stop: make(chan struct{}), arriving: newBareBatch(),
		}
		if b.claimed == nil {
			b.claimed = func(time.Duration) {}
		}
		for range o.writers {
			b.wg.Go(b.write)
		}
		if s.Deliver != nil {
			for range o.drainers {
				b.wg.Go(func() { b.drain(context.WithoutCancel(ctx)) })
			}
		}
		return b, nil
	}
}

// openPool opens the connections of a contender.
func openPool(ctx context.Context, dsn string, connections int) (*pgxpool.Pool, error) {
	c, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("read DSN: %w", err)
	}
	c.MaxConns = int32(connections)
	pool, err := pgxpool.NewWithConfig(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("open pool: %w", err)
	}
	return pool, nil
}

func (b *pgBare) Enqueue(_ context.Context, dest int, payload []byte) error {
	b.mu.Lock()
	batch := b.arriving
	batch.messages = append(batch.messages, bareMessage{id: newID(), lane: int64(dest), payload: payload})
	if len(batch.messages) == bareCap {
		b.full = append(b.full, batch)
		b.arriving = newBareBatch()
	}
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default: // each writer checks before it waits
	}
	<-batch.done
	return batch.err
}

func (b *pgBare) take() *bareBatch {
	b.mu.Lock()
	defer b.mu.Unlock()
	var batch *bareBatch
	switch {
	case len(b.full) > 0:
		batch, b.full = b.full[0], b.full[1:]
	case len(b.arriving.messages) > 0:
		batch, b.arriving = b.arriving, newBareBatch()
	}
	return batch
}

func (b *pgBare) write() {
	for {
		batch := b.take()
		if batch == nil {
			select {
			case <-b.wake:
				continue
			case <-b.stop:
				return
			}
		}
		batch.err = b.insert(batch.messages)
		close(batch.done)
	}
}

func (b *pgBare) insert(ms []bareMessage) error {
	ids, lanes, payloads := make([][]byte, len(ms)), make([]int32, len(ms)), make([][]byte, len(ms))
	for i := range ms {
		ids[i], lanes[i], payloads[i] = ms[i].id[:], int32(ms[i].lane), ms[i].payload
	}
	_, err := b.pool.Exec(context.Background(), pgBareInsert, ids, lanes, payloads, time.Now().UnixMicro())
	return err
}

// drain leases and deletes until it is stopped. If nothing is due it waits briefly.
func (b *pgBare) drain(ctx context.Context) {
	idle := time.NewTicker(time.Millisecond)
	defer idle.Stop()
	for {
		n, err := b.pass(ctx)
		if err != nil {
			b.mu.Lock()
			b.err = errors.Join(b.err, err)
			b.mu.Unlock()
			return
		}
		select {
		case <-b.stop:
			return
		default:
		}
		if n > 0 {
			continue
		}
		select {
		case <-b.stop:
			return
		case <-idle.C:
		}
	}
}

func (b *pgBare) pass(ctx context.Context) (int, error) {
	began := time.Now()
	now := began.UnixMicro()
	ms, err := pgLease(ctx, b.pool, now, b.o.page, now+30_000_000)
	if err != nil {
		return 0, err
	}
	b.claimed(time.Since(began))
	done := b.deliverAll(ctx, ms)
	if len(done) > 0 {
		if _, err := b.pool.Exec(ctx, pgBareDelete, done); err != nil {
			return 0, fmt.Errorf("delete: %w", err)
		}
	}
	return len(done), nil
}

// deliverAll returns what was delivered of a page.
func (b *pgBare) deliverAll(ctx context.Context, ms []bareMessage) (done []int64) {
	if b.o.atOnce == 0 {
		for _, m := range ms {
			if b.deliver(ctx, 0, m.payload) == nil {
				done = append(done, m.seq)
			}
		}
		return done
	}
	var (
		next atomic.Int64
		mu   sync.Mutex
		all  sync.WaitGroup
	)
	for range b.o.atOnce {
		all.Go(func() {
			for n := next.Add(1); n <= int64(len(ms)); n = next.Add(1) {
				if m := ms[n-1]; b.deliver(ctx, 0, m.payload) == nil {
					mu.Lock()
					done = append(done, m.seq)
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	return done
}

func pgLease(ctx context.Context, pool *pgxpool.Pool, now int64, limit int, until int64) ([]bareMessage, error) {
	rows, err := pool.Query(ctx, pgBareLease, now, limit, until)
	if err != nil {
		return nil, fmt.Errorf("lease: %w", err)
	}
	ms, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (m bareMessage, err error) {
		err = row.Scan(&m.seq, &m.payload)
		return m, err
	})
	if err != nil {
		return nil, fmt.Errorf("lease: %w", err)
	}
	return ms, nil
}

func (b *pgBare) Fill(_ context.Context, dest, count int, payload func(int) []byte) error {
	return inChunks(count, func(from, to int) error {
		var ms []bareMessage
		for i := from; i < to; i++ {
			ms = append(ms, bareMessage{id: newID(), lane: int64(dest), payload: payload(i)})
		}
		return b.insert(ms)
	})
}

func (b *pgBare) Unsettled(ctx context.Context) (n int, err error) {
	b.mu.Lock()
	err = b.err
	b.mu.Unlock()
	return n, errors.Join(err, b.pool.QueryRow(ctx, "SELECT count(*) FROM bare_message WHERE state = 0").Scan(&n))
}

// Close must be called after the last enqueue.
func (b *pgBare) Close() error {
	close(b.stop)
	b.wg.Wait()
	b.pool.Close()
	return nil
}
