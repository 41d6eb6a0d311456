package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const pacedRate = 1000 // messages a second

// stopwatch records three instants of each message of a paced load.
type stopwatch struct {
	began                 time.Time
	rate                  int            // messages a second
	due, answered, handed []atomic.Int64 // nanoseconds since began; 0: not yet
	left                  atomic.Int64   // not delivered yet
}

func newStopwatch(count int) *stopwatch {
	w := &stopwatch{
		rate:  pacedRate,
		began: time.Now().Add(-time.Millisecond), // so that no instant is 0
		due:   make([]atomic.Int64, count), answered: make([]atomic.Int64, count), handed: make([]atomic.Int64, count),
	}
	w.left.Store(int64(count))
	return w
}

func (w *stopwatch) now() int64 { return int64(time.Since(w.began)) }

// deliver records when a message first reached the deliverer.
func (w *stopwatch) deliver(_ context.Context, _ int, b []byte) error {
	at := w.now()
	n, err := payloadNumber(b)
	if err != nil {
		return err
	}
	if n < len(w.handed) && w.handed[n].CompareAndSwap(0, at) {
		w.left.Add(-1)
	}
	return nil
}

// load enqueues all messages at the paced rate, whether or not the queue keeps up. Then it waits for the
// deliveries until the cutoff.
func (w *stopwatch) load(ctx context.Context, q Queue, cutoff time.Duration, dest func(n int) int) error {
	const producers = 64
	var (
		due   = make(chan int, len(w.due))
		first error
		once  sync.Once
		wg    sync.WaitGroup
	)
	for range producers {
		wg.Go(func() {
			for n := range due {
				if err := q.Enqueue(ctx, dest(n), payload(n)); err != nil {
					once.Do(func() { first = err })
					continue
				}
				w.answered[n].Store(w.now())
			}
		})
	}
	start := time.Now()
	for n := 0; n < len(w.due); {
		for ; n < len(w.due) && time.Since(start) >= time.Duration(n)*time.Second/time.Duration(w.rate); n++ {
			w.due[n].Store(w.now()) // even when all producers are still waiting
			due <- n
		}
		time.Sleep(200 * time.Microsecond)
	}
	close(due)
	wg.Wait()
	for end := time.Now().Add(cutoff); w.left.Load() > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	return first
}

// latencies returns the milliseconds to the deliverer: from the durable answer, and from the moment when the
// message was to be enqueued. A message that never came counts until now. A delivery that overtook the answer
// counts as 0. The first tenth is the warm-up.
func (w *stopwatch) latencies() (fromAnswer, fromDue []float64) {
	return w.between(len(w.handed)/10, len(w.handed))
}

// between returns the same for the messages from one number up to another.
func (w *stopwatch) between(from, to int) (fromAnswer, fromDue []float64) {
	end := w.now()
	for n := from; n < to; n++ {
		at := w.handed[n].Load()
		if at == 0 {
			at = end
		}
		fromAnswer = append(fromAnswer, max(0, float64(at-w.answered[n].Load())/1e6))
		fromDue = append(fromDue, float64(at-w.due[n].Load())/1e6)
	}
	return fromAnswer, fromDue
}
