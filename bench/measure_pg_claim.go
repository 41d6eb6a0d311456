package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
)

// pgClaimMeasure: a claim of 50 due rows beside many settled ones, compared with the same claim
// without them.
func pgClaimMeasure(z sizes, p *pgServer) measure {
	m := measure{name: "pg claim", columns: []column{
		{key: "full", title: fmt.Sprintf("of %d beside %d settled rows", claimLimit, z.settled), unit: "us", lower: true},
		{key: "empty", title: fmt.Sprintf("of %d, no others", claimLimit), unit: "us", lower: true},
		{key: "growth", title: "growth", unit: "x", lower: true},
	}}
	for _, o := range []pgClaims{pgOurClaims(), pgBareClaims()} {
		m.contenders = append(m.contenders, contender{
			name: o.name, role: o.role, files: o.name,
			prepare: func(ctx context.Context, dir string) error {
				for table, settled := range map[string]int{"full": z.settled, "empty": 0} {
					sub := filepath.Join(dir, table)
					dsn, err := p.create(sub, "")
					if err == nil {
						err = errors.Join(o.fill(ctx, dsn, settled), p.settleDown(sub))
					}
					if err != nil {
						return fmt.Errorf("prepare %s: %w", table, err)
					}
				}
				return nil
			},
			run: func(ctx context.Context, c cell) (v values, err error) {
				open := func(table string) Claimer {
					dsn, dsnErr := p.dsn(filepath.Join(c.prepared, table))
					q, openErr := o.open(ctx, dsn)
					err = errors.Join(err, dsnErr, openErr)
					return q
				}
				full, empty := open("full"), open("empty")
				if err != nil {
					return nil, err
				}
				defer func() { err = errors.Join(err, full.Close(), empty.Close()) }()
				return claims(ctx, full, empty, z.claims)
			},
		})
	}
	return m
}

// pgClaims is a contender of the claim alone.
type pgClaims struct {
	name string
	role role
	// fill makes the tables, with claimLimit due rows and that many settled ones.
	fill func(ctx context.Context, dsn string, settled int) error
	open func(ctx context.Context, dsn string) (Claimer, error)
}

// inMillions calls do for the parts of count.
func inMillions(count int, do func(count int) error) error {
	for count > 0 {
		n := min(count, 1_000_000)
		if err := do(n); err != nil {
			return err
		}
		count -= n
	}
	return nil
}
