package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	hf "github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/postgres"
)

const pgOurName = "holdfast on PostgreSQL"

// pgQueues returns ours as sources, before the others.
func pgQueues(others ...source) []source {
	return append([]source{{name: pgOurName, settings: "defaults, no logger", role: roleOurs, open: openPGOurs}}, others...)
}

// pgOurQueue counts what is left in the table, not what the store reports.
type pgOurQueue struct {
	*ourQueue
	pool *pgxpool.Pool
}

func openPGOurs(ctx context.Context, s Setup) (Queue, error) {
	db, err := postgres.Open(ctx, s.DSN, postgres.Options{Source: "bench"})
	if err != nil {
		return nil, err
	}
	pool, err := openPool(ctx, s.DSN, 1)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	q := &pgOurQueue{ourQueue: &ourQueue{db: db}, pool: pool}
	switch {
	case s.Deliver == nil:
	case s.Claimed != nil:
		q.ourQueue = dispatchOurs(ctx, timedStore{db, s.Claimed}, routesTo(s), nil)
	default:
		q.ourQueue = dispatchOurs(ctx, db, routesTo(s), nil)
	}
	return q, nil
}

func (q *pgOurQueue) Unsettled(ctx context.Context) (n int, err error) {
	err = q.pool.QueryRow(ctx, "SELECT count(*) FROM hf_queue").Scan(&n)
	return n, err
}

func (q *pgOurQueue) Close() error {
	q.pool.Close()
	return q.ourQueue.Close()
}

// timedStore reports how long its claims take.
type timedStore struct {
	*postgres.DB
	claimed func(time.Duration)
}

func (s timedStore) Claim(ctx context.Context, slots map[string]int) (hf.Batch, error) {
	began := time.Now()
	b, err := s.DB.Claim(ctx, slots)
	if len(b.Claims) > 0 { // empty claims do not count
		s.claimed(time.Since(began))
	}
	return b, err
}

// pgOurSettled makes rows as settlements leave them: a message, and its delivery. Parameters:
// count, payload, seq of a message whose names they share.
const pgOurSettled = `WITH m AS (
	INSERT INTO hf_message (seq, id, route, lane, created, delay, payload)
	SELECT s.n, '\x01'::bytea || int8send(s.n) || int8send(s.n), o.route, o.lane, o.created, o.delay, $2
	FROM (SELECT nextval('hf_seq') AS n FROM generate_series(1, $1)) s, hf_message o WHERE o.seq = $3
	RETURNING seq, lane, created)
INSERT INTO hf_final (seq, lane, state, settled, expires, failures, tries, cycle, force)
SELECT seq, lane, 2, created, 9223372036854775807, 0, 1, 1, false FROM m`

func pgOurClaims() pgClaims {
	return pgClaims{name: pgOurName, role: roleOurs, fill: fillPGOurs, open: func(ctx context.Context, dsn string) (Claimer, error) {
		db, err := postgres.Open(ctx, dsn, postgres.Options{Source: "bench"})
		return &ourClaimer{db}, err
	}}
}

func fillPGOurs(ctx context.Context, dsn string, settled int) (err error) {
	q, err := openPGOurs(ctx, Setup{DSN: dsn, Destinations: 1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	ours := q.(*pgOurQueue)
	if err := ours.Fill(ctx, 0, claimLimit, payload); err != nil {
		return err
	}
	var like int64
	if err := ours.pool.QueryRow(ctx, "SELECT min(seq) FROM hf_message").Scan(&like); err != nil {
		return err
	}
	if err := inMillions(settled, func(n int) error {
		_, err := ours.pool.Exec(ctx, pgOurSettled, n, payload(0), like)
		return err
	}); err != nil {
		return fmt.Errorf("fill: %w", err)
	}
	return nil
}
