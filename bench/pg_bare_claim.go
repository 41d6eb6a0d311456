package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// count, payload, state; ids that follow each other, as those of version 7 do
	pgBareSettled = `INSERT INTO bare_message (id, lane, state, due, created, settled, payload)
SELECT int8send(s.n) || int8send(s.n), 1, $3, 0, 0, 1, $2 FROM (SELECT nextval('bare_message_seq_seq') AS n FROM generate_series(1, $1)) s`

	// seqs
	pgBareReturn = `UPDATE bare_message SET due = 0, owner = NULL, claim = NULL WHERE seq = ANY ($1)`
)

func pgBareClaims() pgClaims {
	return pgClaims{name: "bare lease", role: roleBare, fill: fillPGBareClaim, open: func(ctx context.Context, dsn string) (Claimer, error) {
		pool, err := openPool(ctx, dsn, 1)
		return &pgBareClaimer{pool}, err
	}}
}

func fillPGBareClaim(ctx context.Context, dsn string, settled int) (err error) {
	q, err := openPGBare(pgBareOptions{writers: 1})(ctx, Setup{DSN: dsn})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	b := q.(*pgBare)
	if err := inMillions(settled, func(n int) error {
		_, err := b.pool.Exec(ctx, pgBareSettled, n, payload(0), stateDelivered)
		return err
	}); err != nil {
		return fmt.Errorf("fill: %w", err)
	}
	return b.Fill(ctx, 0, claimLimit, payload)
}

type pgBareClaimer struct{ pool *pgxpool.Pool }

func (c *pgBareClaimer) Claim(ctx context.Context, limit int) (int, float64, error) {
	began := time.Now()
	now := began.UnixMicro()
	ms, err := pgLease(ctx, c.pool, now, limit, now+30_000_000)
	took := time.Since(began)
	if err != nil {
		return 0, 0, err
	}
	seqs := make([]int64, len(ms))
	for i := range ms {
		seqs[i] = ms[i].seq
	}
	_, err = c.pool.Exec(ctx, pgBareReturn, seqs)
	return len(ms), float64(took.Nanoseconds()) / 1000, err
}

func (c *pgBareClaimer) Close() error {
	c.pool.Close()
	return nil
}
