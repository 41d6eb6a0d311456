package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	backlogHealthy = 0
	backlogDead    = 1
	backlogProbes  = 10_000
)

// backlogMeasure: a process starts with many pending rows of a destination that never answers. It
// is ready when a message to a healthy destination is delivered. Memory is read after 10,000 more
// of them.
func backlogMeasure(z sizes) measure {
	m := measure{name: "backlog", columns: []column{
		{key: "open", title: "start to opened", unit: "ms", lower: true},
		{key: "ready", title: "start to first delivery", unit: "ms", lower: true},
		{key: "rss", title: fmt.Sprintf("memory, %d pending rows", z.parked), unit: "MB", lower: true},
		{key: "peak", title: "memory at most", unit: "MB", lower: true},
	}}
	for _, s := range queues(bareQueue()) {
		prepare := func(_ context.Context, dir string) error {
			if s.role == roleBare {
				return fillBare(dir, backlogDead, z.parked)
			}
			return fill(s.open, dir, 2, backlogDead, z.parked)
		}
		m.add(s, prepare, func(ctx context.Context, c cell) (values, error) {
			p, err := startChild(ctx, childArgs{task: "backlog", contender: s.name, dir: c.prepared, profile: c.profile})
			if err != nil {
				return nil, err
			}
			r := p.ready
			return values{"open": r.OpenMS, "ready": r.ReadyMS, "rss": r.RSS, "peak": r.Peak}, p.end()
		})
	}
	return m
}

// backlogChild is the process that is measured.
func backlogChild(ctx context.Context, a childArgs) (err error) {
	o, err := find(a.contender)
	if err != nil {
		return err
	}
	f := newFlow(1024)
	since := func() float64 { return float64(time.Now().UnixNano()-a.started) / 1e6 }
	q, err := o.Open(context.Background(), Setup{Dir: a.dir, Destinations: 2, Deliver: func(ctx context.Context, dest int, b []byte) error {
		if dest == backlogDead {
			<-ctx.Done()
			return ctx.Err()
		}
		return f.deliver(ctx, dest, b)
	}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	r := ready{OpenMS: since()}
	if err := f.enqueue(ctx, q, 0); err != nil {
		return err
	}
	if err := f.handedAll(ctx); err != nil {
		return err
	}
	r.ReadyMS = since()
	if err := enqueueAll(ctx, q, backlogHealthy, backlogProbes); err != nil {
		return err
	}
	time.Sleep(200 * time.Millisecond)
	if r.RSS, r.Peak, err = memory(); err != nil {
		return err
	}
	if err := r.print(); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// handedAll waits until everything that was enqueued is delivered.
func (f *flow) handedAll(ctx context.Context) error {
	for f.handed.Load() < f.enqueued.Load() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		time.Sleep(50 * time.Microsecond)
	}
	return nil
}
