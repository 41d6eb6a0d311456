package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// sizes say how much is measured.
type sizes struct {
	warm, cell, cutoff time.Duration // before, during, and at most after a cell's load
	window             int           // messages under way at most in a cycle
	backlog            int           // rows of a drain
	paced, late        time.Duration // length of a paced load, and of the wait for what is late
	parked             int           // rows of each kind beside a claim; rows of a dead destination
	claims             int           // claims per cell
	callers, senders   []int         // at once: of a join, of the inbox
	settled            int           // rows beside a claim from PostgreSQL
	held               time.Duration // of an old transaction
	mails              int           // that wait for a mail server
	nodes              []int         // on one PostgreSQL
	lanes              []int         // of a dispatcher, beside ten
	recorded           time.Duration // of a cycle whose messages are recorded
	records, shipped   int           // of an audit log that is verified and asked; that a site sends
	webhooks           int           // messages to subscriptions; a multiple of 640, so that 64 publishers have as many each, and so have 80 requests at a time
	pgWebhooks         int           // the same from PostgreSQL; a tenth of them goes out before the clock runs
	subscribers        int           // against which an event is matched
	brief              bool          // on PostgreSQL only: fewer peers and bare loops in measures with many cells
}

func fullSizes() sizes {
	return sizes{
		warm: 300 * time.Millisecond, cell: 2 * time.Second, cutoff: 10 * time.Second, window: 4096,
		backlog: 100_000, paced: 5 * time.Second, late: 2 * time.Second, parked: 1_000_000, claims: 500,
		callers: []int{1, 8, 64}, senders: []int{1, 64},
		settled: 10_000_000, held: 150 * time.Second, mails: 10_000, nodes: []int{1, 2, 3}, lanes: []int{1000, 100_000}, recorded: 20 * time.Second, records: 1_000_000, shipped: 100_000,
		webhooks: 38_400, pgWebhooks: 64_000, subscribers: 100_000,
	}
}

func quickSizes() sizes {
	return sizes{
		warm: 100 * time.Millisecond, cell: 300 * time.Millisecond, cutoff: 2 * time.Second, window: 1024,
		backlog: 10_000, paced: 400 * time.Millisecond, late: 300 * time.Millisecond, parked: 20_000, claims: 100,
		callers: []int{8}, senders: []int{64},
		settled: 50_000, held: 3 * time.Second, mails: 500, nodes: []int{1, 3}, lanes: []int{1000, 10_000}, recorded: 600 * time.Millisecond, records: 100_000, shipped: 20_000,
		webhooks: 3_200, pgWebhooks: 3_200, subscribers: 3_000, brief: true,
	}
}

// crowd runs producers that call do again and again, each waiting for its own answer, until stop is
// called. stop returns the first error.
func crowd(producers int, do func(n int) error) (stop func() error) {
	var (
		ended atomic.Bool
		next  atomic.Int64
		once  sync.Once
		first error
		wg    sync.WaitGroup
	)
	for range producers {
		wg.Go(func() {
			for !ended.Load() {
				if err := do(int(next.Add(1))); err != nil {
					once.Do(func() { first = err })
					return
				}
			}
		})
	}
	return func() error {
		ended.Store(true)
		wg.Wait()
		return first
	}
}

// rate runs do from many producers and returns the answers per second, after a warm-up.
func rate(z sizes, producers int, do func(n int) error) (float64, error) {
	var done atomic.Int64
	stop := crowd(producers, func(n int) error {
		err := do(n)
		done.Add(1)
		return err
	})
	time.Sleep(z.warm)
	before, began := done.Load(), time.Now()
	time.Sleep(z.cell)
	count, took := done.Load()-before, time.Since(began)
	if err := stop(); err != nil {
		return 0, err
	}
	return float64(count) / took.Seconds(), nil
}

// enqueueRate returns the rate of durable answers.
func enqueueRate(open Opener, dir string, z sizes, producers int) (v values, err error) {
	ctx := context.Background() // drivers start a goroutine per statement for a context that can end
	q, err := open(ctx, Setup{Dir: dir, Destinations: 1})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	r, err := rate(z, producers, func(n int) error { return q.Enqueue(ctx, 0, payload(n)) })
	return values{"rate": r}, err
}

// flow counts messages through a queue and limits how many are under way.
type flow struct {
	slots            chan struct{}
	enqueued, handed atomic.Int64
}

func newFlow(window int) *flow {
	return &flow{slots: make(chan struct{}, window)}
}

// deliver is the handler that does nothing.
func (f *flow) deliver(context.Context, int, []byte) error {
	f.handed.Add(1)
	select {
	case <-f.slots:
	default: // delivered twice, or not sent through this flow
	}
	return nil
}

func (f *flow) enqueue(ctx context.Context, q Queue, n int) error {
	f.slots <- struct{}{}
	if err := q.Enqueue(ctx, 0, payload(n)); err != nil {
		return err
	}
	f.enqueued.Add(1)
	return nil
}

// settled waits until all messages are settled, at most until the deadline, and returns how many of
// total are.
func (f *flow) settled(ctx context.Context, q Queue, total int, deadline time.Time) (int, error) {
	for f.handed.Load() < int64(total) && time.Now().Before(deadline) {
		time.Sleep(200 * time.Microsecond)
	}
	for {
		left, err := q.Unsettled(ctx)
		if err != nil {
			return 0, fmt.Errorf("count unsettled: %w", err)
		}
		if left == 0 || !time.Now().Before(deadline) {
			return total - left, nil
		}
		time.Sleep(time.Millisecond)
	}
}

// cycleRate returns the rate of messages from durable enqueue to settled. The clock runs from the
// first enqueue until the last message is settled.
func cycleRate(open Opener, dir string, z sizes, producers int) (v values, err error) {
	ctx := context.Background()
	f := newFlow(z.window)
	q, err := open(ctx, Setup{Dir: dir, Destinations: 1, Deliver: f.deliver})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	if c, ok := q.(Cycler); ok {
		r, err := rate(z, producers, func(n int) error { return c.Cycle(ctx, payload(n)) })
		return values{"rate": r}, err
	}
	return f.cycle(ctx, q, z, producers)
}

// cycle loads an open queue whose deliveries go to f.
func (f *flow) cycle(ctx context.Context, q Queue, z sizes, producers int) (values, error) {
	if err := f.enqueue(ctx, q, 0); err != nil { // shows that deliveries run
		return nil, err
	}
	if n, err := f.settled(ctx, q, 1, time.Now().Add(z.cutoff+2*time.Second)); err != nil || n != 1 {
		return nil, errors.Join(errors.New("first message was not settled"), err)
	}
	began := time.Now()
	stop := crowd(producers, func(n int) error { return f.enqueue(ctx, q, n) })
	time.Sleep(z.cell)
	if err := stop(); err != nil {
		return nil, err
	}
	total := int(f.enqueued.Load())
	n, err := f.settled(ctx, q, total, time.Now().Add(z.cutoff))
	if err != nil {
		return nil, err
	}
	return values{"rate": float64(n-1) / time.Since(began).Seconds()}, nil
}

// fill makes a backlog in dir.
func fill(open Opener, dir string, destinations, dest, count int) (err error) {
	ctx := context.Background()
	q, err := open(ctx, Setup{Dir: dir, Destinations: destinations})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	if f, ok := q.(Filler); ok {
		return f.Fill(ctx, dest, count, payload)
	}
	return enqueueAll(ctx, q, dest, count)
}

func enqueueAll(ctx context.Context, q Queue, dest, count int) error {
	var next atomic.Int64
	errs := make([]error, 256)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			for n := next.Add(1); n <= int64(count) && errs[i] == nil; n = next.Add(1) {
				errs[i] = q.Enqueue(ctx, dest, payload(int(n)))
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// drainRate opens a filled directory and works it off. The clock runs from before the open until
// the last message is settled, or until the cutoff.
func drainRate(open Opener, dir string, z sizes) (v values, err error) {
	ctx := context.Background()
	f := newFlow(0)
	began := time.Now()
	q, err := open(ctx, Setup{Dir: dir, Destinations: 1, Deliver: f.deliver})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	n, err := f.settled(ctx, q, z.backlog, began.Add(z.cutoff))
	if err != nil {
		return nil, err
	}
	return values{"rate": float64(n) / time.Since(began).Seconds()}, nil
}
