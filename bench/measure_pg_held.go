package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const heldRate = 800 // messages a second

// pgHeldMeasure: messages pass at 800 a second while an old transaction is open, so no dead row is
// removed. The last fifth counts.
func pgHeldMeasure(z sizes, p *pgServer) measure {
	m := measure{name: "pg held", columns: []column{
		{key: "claim1", title: "claim p50, first fifth", unit: "ms", lower: true},
		{key: "claim5", title: fmt.Sprintf("claim p50, last fifth of %v", z.held), unit: "ms", lower: true},
		{key: "worst5", title: "claim p99, last fifth", unit: "ms", lower: true},
		{key: "growth", title: "growth of p50", unit: "x", lower: true},
		{key: "late1", title: "commit to deliverer p99, first fifth", unit: "ms", lower: true},
		{key: "late5", title: "commit to deliverer p99, last fifth", unit: "ms", lower: true},
	}}
	for _, s := range z.unlessBrief(pgQueues(pgBareDrainer(1, 100)), pgRiverTuned()) {
		m.add(s, nil, func(_ context.Context, c cell) (values, error) {
			return p.cell(c.dir, "", func(dsn string) (values, error) {
				return heldTimes(s.open, Setup{Dir: c.dir, DSN: dsn, Destinations: 1}, z)
			})
		})
	}
	return m
}

func heldTimes(open Opener, s Setup, z sizes) (v values, err error) {
	ctx := context.Background()
	count := int(z.held.Seconds() * heldRate)
	w, claims := newStopwatch(count), &claimTimes{}
	w.rate, s.Deliver, s.Claimed = heldRate, w.deliver, claims.note
	q, err := open(ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	end, err := oldTransaction(ctx, s.DSN)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end()) }()
	claims.begin()
	if err := w.load(ctx, q, z.late, func(int) int { return 0 }); err != nil {
		return nil, err
	}
	first, _ := w.between(0, count/5)
	last, _ := w.between(count-count/5, count)
	v = values{"late1": percentile(first, 99), "late5": percentile(last, 99)}
	claims.report(v, z.held)
	return v, nil
}

// claimTimes records how long claims took, and when.
type claimTimes struct {
	mu    sync.Mutex
	began time.Time
	at    []time.Duration
	took  []float64 // milliseconds
}

func (c *claimTimes) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.began, c.at, c.took = time.Now(), nil, nil
}

func (c *claimTimes) note(took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.took = append(c.at, time.Since(c.began)), append(c.took, took.Seconds()*1000)
}

// report adds the times of the first and of the last fifth, if known.
func (c *claimTimes) report(v values, length time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.took) == 0 {
		return // the contender does not report its claims
	}
	var first, last []float64
	for i, at := range c.at {
		switch {
		case at < length/5:
			first = append(first, c.took[i])
		case at >= length-length/5 && at < length:
			last = append(last, c.took[i])
		}
	}
	v["claim1"], v["claim5"], v["worst5"] = percentile(first, 50), percentile(last, 50), percentile(last, 99)
	v["growth"] = v["claim5"] / v["claim1"]
}
