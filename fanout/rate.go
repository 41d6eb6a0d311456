package fanout

import (
	"context"
	"sync"
	"time"
)

// limiter keeps to a Rate. The zero value is ready.
type limiter struct {
	mu    sync.Mutex
	rate  Rate
	times []time.Time // when the last calls begin, as a ring
	next  int
}

// wait blocks until a call may begin, or until ctx ends.
func (l *limiter) wait(ctx context.Context, rate *Rate) error {
	if rate == nil {
		return nil
	}
	d := l.take(*rate, time.Now())
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// take returns how long the next call waits. One that does not wait for its turn leaves it unused.
func (l *limiter) take(rate Rate, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rate != rate {
		l.rate, l.times, l.next = rate, make([]time.Time, rate.Count), 0
	}
	at := now
	if before := l.times[l.next]; !before.IsZero() && before.Add(rate.Per).After(at) {
		at = before.Add(rate.Per)
	}
	l.times[l.next] = at
	l.next = (l.next + 1) % len(l.times)
	return at.Sub(now)
}
