package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"
)

const lanesBusy = 10

// lanesMeasure: the processor time of a message from its enqueue to its settlement, with ten busy
// lanes and all others idle, and the memory of an idle lane. The growth is of one run: more lanes
// compared with ten.
func lanesMeasure(z sizes) measure {
	m := measure{name: "lanes", columns: []column{{key: "cpu10", title: "processor, 10 lanes", unit: "us/msg", lower: true}}}
	for _, n := range z.lanes {
		name := strconv.Itoa(n)
		m.columns = append(m.columns,
			column{key: "cpu" + name, title: fmt.Sprintf("processor, %d lanes", n), unit: "us/msg", lower: true},
			column{key: "growth" + name, title: "growth", unit: "x", lower: true},
			column{key: "size" + name, title: "memory of an idle lane", unit: "B", lower: true},
		)
	}
	for _, s := range queues() {
		m.add(s, nil, func(ctx context.Context, c cell) (values, error) {
			ten, small, err := lanesCost(ctx, s.open, c.dir, z, lanesBusy)
			v := values{"cpu10": ten}
			for _, n := range z.lanes {
				if err != nil {
					return nil, err
				}
				var each, size float64
				each, size, err = lanesCost(ctx, s.open, c.dir, z, n)
				name := strconv.Itoa(n)
				v["cpu"+name], v["growth"+name], v["size"+name] = each, each/ten, (size-small)/float64(n-lanesBusy)
			}
			return v, err
		})
	}
	return m
}

// lanesCost returns the processor time per message, in microseconds, and the memory in use before
// the load, in bytes.
func lanesCost(ctx context.Context, open Opener, dir string, z sizes, lanes int) (each, size float64, err error) {
	dir = filepath.Join(dir, strconv.Itoa(lanes))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return 0, 0, err
	}
	f := newFlow(z.window)
	q, err := open(context.WithoutCancel(ctx), Setup{Dir: dir, Destinations: lanes, Deliver: f.deliver})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	load := func(count int) error {
		per := count / 64
		stop := crowdOf(64, per, func(n int) error {
			f.slots <- struct{}{}
			return q.Enqueue(ctx, n%lanesBusy, payload(n))
		})
		if err := stop(); err != nil {
			return err
		}
		want := f.enqueued.Add(int64(per * 64))
		for began := time.Now(); f.handed.Load() < want; time.Sleep(time.Millisecond) {
			if time.Since(began) > z.cutoff {
				return fmt.Errorf("%d of %d messages are delivered after %s", f.handed.Load(), want, z.cutoff)
			}
		}
		return nil
	}
	if err := load(z.backlog / 50); err != nil { // shows that deliveries run
		return 0, 0, err
	}
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	before, err := processor()
	if err != nil {
		return 0, 0, err
	}
	if err := load(z.backlog / 4); err != nil {
		return 0, 0, err
	}
	after, err := processor()
	return float64((after - before).Nanoseconds()) / 1e3 / float64(z.backlog/4), float64(s.HeapAlloc), err
}

// crowdOf makes each goroutine do the work equally often, and returns a function that waits for
// them.
func crowdOf(goroutines, each int, do func(n int) error) (wait func() error) {
	ended := make(chan error, goroutines)
	for g := range goroutines {
		go func() {
			var err error
			for i := 0; i < each && err == nil; i++ {
				err = do(g + i*goroutines)
			}
			ended <- err
		}()
	}
	return func() (err error) {
		for range goroutines {
			err = errors.Join(err, <-ended)
		}
		return err
	}
}
