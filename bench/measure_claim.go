package main

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const claimLimit = 50

// claimMeasure: a claim of 50 due rows beside many parked, delivered and dead rows, compared with
// the same claim without them.
func claimMeasure(z sizes) measure {
	m := measure{name: "claim", columns: []column{
		{key: "full", title: fmt.Sprintf("of %d beside 3 x %d rows", claimLimit, z.parked), unit: "us", lower: true},
		{key: "empty", title: fmt.Sprintf("of %d, no others", claimLimit), unit: "us", lower: true},
		{key: "growth", title: "growth", unit: "x", lower: true},
	}}
	for _, o := range holdfast() {
		if o.Claim != nil {
			m.contenders = append(m.contenders, claimContender(o.Name, roleOurs, z, o.Claim))
		}
	}
	m.contenders = append(m.contenders, claimContender(bareName, roleBare, z, openBareClaim))
	return m
}

func claimContender(name string, r role, z sizes, open func(context.Context, string, ClaimRows) (Claimer, error)) contender {
	tables := map[string]ClaimRows{
		"full":  {Parked: z.parked, Delivered: z.parked, Dead: z.parked, Due: claimLimit},
		"empty": {Due: claimLimit},
	}
	return contender{
		name: name, role: r,
		prepare: func(ctx context.Context, dir string) error {
			for table, rows := range tables {
				sub := filepath.Join(dir, table)
				if err := os.Mkdir(sub, 0o755); err != nil {
					return err
				}
				c, err := open(ctx, sub, rows)
				if err != nil {
					return fmt.Errorf("prepare %s: %w", table, err)
				}
				if err := c.Close(); err != nil {
					return fmt.Errorf("prepare %s: %w", table, err)
				}
			}
			return nil
		},
		run: func(ctx context.Context, c cell) (v values, err error) {
			open := func(table string) Claimer {
				q, openErr := open(ctx, filepath.Join(c.prepared, table), tables[table])
				err = errors.Join(err, openErr)
				return q
			}
			full, empty := open("full"), open("empty")
			if err != nil {
				return nil, err
			}
			defer func() { err = errors.Join(err, full.Close(), empty.Close()) }()
			return claims(ctx, full, empty, z.claims)
		},
	}
}

// claims claims from both tables in turn and returns the medians, without the first tenth, which is
// the warm-up.
func claims(ctx context.Context, full, empty Claimer, count int) (values, error) {
	var times [2][]float64
	for n := range count {
		for i, q := range []Claimer{full, empty} {
			taken, us, err := q.Claim(ctx, claimLimit)
			if err != nil {
				return nil, err
			}
			if taken != claimLimit {
				return nil, fmt.Errorf("claimed %d of %d rows", taken, claimLimit)
			}
			if n >= count/10 {
				times[i] = append(times[i], us)
			}
		}
	}
	v := values{"full": median(times[0]), "empty": median(times[1])}
	v["growth"] = v["full"] / v["empty"]
	return v, nil
}

type bareClaim struct{ *bareConn }

func openBareClaim(_ context.Context, dir string, rows ClaimRows) (Claimer, error) {
	c, err := openBare(dir)
	if err != nil {
		return nil, err
	}
	last, err := c.number(bareLast)
	if err != nil || last > 0 {
		return bareClaim{c}, err
	}
	return bareClaim{c}, errors.Join(
		c.fill(1, stateParked, rows.Parked, payload), c.fill(1, stateDelivered, rows.Delivered, payload),
		c.fill(1, statePending, rows.Dead, payload), c.fill(0, statePending, rows.Due, payload),
	)
}

func (c bareClaim) Claim(_ context.Context, limit int) (n int, micros float64, err error) {
	began := time.Now()
	err = c.query(barePage, func([]driver.Value) { n++ }, int64(0), began.UnixMicro(), int64(limit))
	return n, float64(time.Since(began)) / 1e3, err
}
