package main

import (
	"context"
	"errors"
	"fmt"
)

// pgMeasures are the measures on PostgreSQL: the same loads as on files, and those that need a
// shared database.
func pgMeasures(z sizes, p *pgServer) []measure {
	ms := []measure{
		pgEnqueueMeasure(z, p, 64),
		pgDrainMeasure(z, p),
		pgLatencyMeasure(z, p),
		pgClaimMeasure(z, p),
		pgFollowMeasure(z, p),
		pgNodesEnqueueMeasure(z, p, 64, false),
		pgNodesDrainMeasure(z, p),
		pgHeldMeasure(z, p),
		pgWebhookMeasure(z, p),
	}
	if !z.brief {
		ms = append(ms, pgNodesEnqueueMeasure(z, p, 64, true))
	}
	return ms
}

// unlessBrief adds sources that a short run leaves out.
func (z sizes) unlessBrief(always []source, more ...source) []source {
	if z.brief {
		return always
	}
	return append(always, more...)
}

func pgEnqueueMeasure(z sizes, p *pgServer, producers int) measure {
	m := measure{name: fmt.Sprintf("pg enqueue/%d", producers), columns: []column{{key: "rate", unit: "msg/s"}}}
	for _, s := range pgQueues(pgRiverDefault(), pgBareWriter(1), pgBareWriter(2)) {
		m.add(s, nil, func(_ context.Context, c cell) (values, error) {
			return p.cell(c.dir, "", func(dsn string) (values, error) {
				return enqueueRate(at(s.open, dsn), c.dir, z, producers)
			})
		})
	}
	return m
}

// pgDrainMeasure: a backlog that exists when the node starts is claimed with leases, delivered to a
// handler that does nothing, and settled.
func pgDrainMeasure(z sizes, p *pgServer) measure {
	m := measure{name: "pg drain", columns: []column{{key: "rate", unit: "msg/s"}}}
	always := pgQueues(pgRiverDefault(), pgRiverTuned(), pgBareDrainer(1, 500), pgBareDrainer(2, 500))
	for _, s := range z.unlessBrief(always, pgBareDrainer(1, 100), pgBareDrainer(4, 100)) {
		m.add(s, func(_ context.Context, dir string) error { return p.fill(s.open, dir, z.backlog) }, func(_ context.Context, c cell) (values, error) {
			return p.cell(c.dir, c.prepared, func(dsn string) (values, error) {
				return drainRate(at(s.open, dsn), c.dir, z)
			})
		})
	}
	return m
}

// pgLatencyMeasure: messages are enqueued at one node and delivered by another, at 1,000 messages a
// second. Both nodes are in this process, so one clock measures both.
func pgLatencyMeasure(z sizes, p *pgServer) measure {
	m := measure{name: "pg latency", columns: []column{
		{key: "answer50", title: "commit to another node p50", unit: "ms", lower: true},
		{key: "answer99", title: "commit to another node p99", unit: "ms", lower: true},
		{key: "due50", title: "with commit p50", unit: "ms", lower: true},
		{key: "due99", title: "with commit p99", unit: "ms", lower: true},
	}}
	for _, s := range pgQueues(pgRiverDefault(), pgRiverTuned()) {
		m.add(s, nil, func(_ context.Context, c cell) (values, error) {
			return p.cell(c.dir, "", func(dsn string) (v values, err error) {
				ctx := context.Background()
				w := newStopwatch(int(z.paced.Seconds() * pacedRate))
				q, end, err := openTwo(ctx, s.open, Setup{Dir: c.dir, DSN: dsn, Destinations: 1, Deliver: w.deliver})
				if err != nil {
					return nil, err
				}
				defer func() { err = errors.Join(err, end()) }()
				if err := w.load(ctx, q, z.late, func(int) int { return 0 }); err != nil {
					return nil, err
				}
				answer, due := w.latencies()
				return values{
					"answer50": percentile(answer, 50), "answer99": percentile(answer, 99),
					"due50": percentile(due, 50), "due99": percentile(due, 99),
				}, nil
			})
		})
	}
	return m
}

// openTwo opens a node that takes messages and one that delivers them.
func openTwo(ctx context.Context, open Opener, s Setup) (in Queue, end func() error, err error) {
	out, err := open(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	s.Deliver = nil
	in, err = open(ctx, s)
	if err != nil {
		return nil, nil, errors.Join(err, out.Close())
	}
	return in, func() error { return errors.Join(in.Close(), out.Close()) }, nil
}
