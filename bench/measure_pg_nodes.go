package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// A column for each count of nodes, and how the rates compare.
func nodeColumns(z sizes) []column {
	var cs []column
	for _, n := range z.nodes {
		cs = append(cs, column{key: fmt.Sprint(n), title: fmt.Sprintf("by %d", n), unit: "msg/s"})
	}
	return append(cs, column{key: "least", title: "worst step to more nodes", unit: "x"})
}

// leastStep is the worst ratio of a rate to that of the next smaller number of nodes.
func leastStep(z sizes, v values) {
	for i := 1; i < len(z.nodes); i++ {
		step := v[fmt.Sprint(z.nodes[i])] / v[fmt.Sprint(z.nodes[i-1])]
		if old, ok := v["least"]; !ok || step < old {
			v["least"] = step
		}
	}
}

// pgNodesEnqueueMeasure: the same producers, spread over one to three nodes; with each, as many
// producers at every node.
func pgNodesEnqueueMeasure(z sizes, p *pgServer, producers int, each bool) measure {
	m := measure{name: fmt.Sprintf("pg nodes enqueue/%d", producers), columns: nodeColumns(z)}
	if each {
		m.name += " each"
	}
	for _, s := range z.unlessBrief(pgQueues(pgBareWriter(1)), pgRiverDefault()) {
		m.add(s, nil, func(_ context.Context, c cell) (values, error) {
			return p.eachCount(z, c, "", func(dsn string, n int) (float64, error) {
				atOnce := producers
				if each {
					atOnce *= n
				}
				v, err := enqueueRate(several(s.open, dsn, n), c.dir, z, atOnce)
				return v["rate"], err
			})
		})
	}
	return m
}

// pgNodesDrainMeasure: the same backlog, worked off by one to three nodes.
func pgNodesDrainMeasure(z sizes, p *pgServer) measure {
	m := measure{name: "pg nodes drain", columns: nodeColumns(z)}
	for _, s := range z.unlessBrief(pgQueues(pgBareDrainer(1, 500)), pgRiverTuned()) {
		m.add(s, func(_ context.Context, dir string) error { return p.fill(s.open, dir, z.backlog) }, func(_ context.Context, c cell) (values, error) {
			return p.eachCount(z, c, c.prepared, func(dsn string, n int) (float64, error) {
				v, err := drainRate(several(s.open, dsn, n), c.dir, z)
				return v["rate"], err
			})
		})
	}
	return m
}

// eachCount runs do on a fresh database for each number of nodes.
func (p *pgServer) eachCount(z sizes, c cell, from string, do func(dsn string, n int) (float64, error)) (values, error) {
	v := values{}
	for _, n := range z.nodes {
		_, err := p.cell(c.dir, from, func(dsn string) (values, error) {
			r, err := do(dsn, n)
			v[fmt.Sprint(n)] = r
			return nil, err
		})
		if err != nil {
			return nil, err
		}
	}
	leastStep(z, v)
	return v, nil
}

// nodes are several nodes on one database, used in turn.
type nodes struct {
	all  []Queue
	mu   sync.Mutex
	next int
}

// several opens that many nodes as one queue.
func several(open Opener, dsn string, n int) Opener {
	return func(ctx context.Context, s Setup) (Queue, error) {
		s.DSN = dsn
		ns := &nodes{}
		for range n {
			q, err := open(ctx, s)
			if err != nil {
				return nil, errors.Join(err, ns.Close())
			}
			ns.all = append(ns.all, q)
		}
		return ns, nil
	}
}

func (ns *nodes) Enqueue(ctx context.Context, dest int, payload []byte) error {
	ns.mu.Lock()
	q := ns.all[ns.next%len(ns.all)]
	ns.next++
	ns.mu.Unlock()
	return q.Enqueue(ctx, dest, payload)
}

func (ns *nodes) Unsettled(ctx context.Context) (int, error) { return ns.all[0].Unsettled(ctx) }

func (ns *nodes) Close() error {
	var err error
	for _, q := range ns.all {
		err = errors.Join(err, q.Close())
	}
	return err
}
