package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	deadHealthy = 50 // destinations 0 to 49 answer
	deadSilent  = 50 // destinations 50 to 99 never do
	deadWaiting = 20 // messages for each silent one before the clock runs
)

// deadMeasure: the time from commit to deliverer for 50 healthy destinations, which share 1,000
// messages a second, with 50 others that never answer and without them.
func deadMeasure(z sizes) measure {
	m := measure{name: "dead", columns: []column{
		{key: "beside99", title: "healthy p99 beside 50 dead", unit: "ms", lower: true},
		{key: "alone99", title: "healthy p99 alone", unit: "ms", lower: true},
		{key: "beside50", title: "healthy p50 beside 50 dead", unit: "ms", lower: true},
		{key: "alone50", title: "healthy p50 alone", unit: "ms", lower: true},
	}}
	for _, s := range queues() {
		m.add(s, nil, func(_ context.Context, c cell) (values, error) {
			return bothTimes(c, func(dir string, beside bool) ([]float64, error) { return healthyTimes(s.open, dir, z, beside) })
		})
	}
	return m
}

// bothTimes returns the percentiles of times alone, and beside those that do not answer.
func bothTimes(c cell, times func(dir string, beside bool) ([]float64, error)) (values, error) {
	v := values{}
	for _, name := range []string{"alone", "beside"} {
		dir := filepath.Join(c.dir, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, err
		}
		list, err := times(dir, name == "beside")
		if err != nil {
			return nil, err
		}
		v[name+"50"], v[name+"99"] = percentile(list, 50), percentile(list, 99)
	}
	return v, nil
}

// healthyTimes returns the milliseconds from the durable answer to the deliverer.
func healthyTimes(open Opener, dir string, z sizes, dead bool) (times []float64, err error) {
	ctx := context.Background()
	w := newStopwatch(int(z.paced.Seconds() * pacedRate))
	q, err := open(ctx, Setup{Dir: dir, Destinations: deadHealthy + deadSilent, Deliver: func(ctx context.Context, dest int, b []byte) error {
		if dest >= deadHealthy {
			<-ctx.Done() // never answers
			return ctx.Err()
		}
		return w.deliver(ctx, dest, b)
	}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	if dead {
		end, err := feedDead(ctx, q)
		if err != nil {
			return nil, err
		}
		defer end()
	}
	err = w.load(ctx, q, z.late, func(n int) int { return n % deadHealthy })
	times, _ = w.latencies()
	return times, err
}

// feedDead gives the silent destinations a backlog, and then a message every 10 ms until end is
// called.
func feedDead(ctx context.Context, q Queue) (end func(), err error) {
	dead := func(n int) int { return deadHealthy + n%deadSilent }
	for n := range deadSilent * deadWaiting {
		if err := q.Enqueue(ctx, dead(n), payload(n)); err != nil {
			return nil, err
		}
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-tick.C:
				_ = q.Enqueue(ctx, dead(n), payload(n)) // only pressure; not measured
			}
		}
	})
	return func() {
		close(stop)
		wg.Wait()
	}, nil
}
