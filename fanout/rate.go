package fanout

import (
	"sync"
	"time"
)

const (
	// mostTurn is how long an attempt waits for its turn. One whose turn comes later goes back to the store, so
	// that a stop and a pause need not wait for it.
	mostTurn = 2 * time.Second
	// mostRest is the longest that a lane rests between two looks at its rate, which may be raised meanwhile.
	mostRest = time.Minute
)

// limiter keeps to a Rate. The zero value is ready.
type limiter struct {
	mu    sync.Mutex
	rate  Rate
	began time.Time       // what times count from
	times []time.Duration // when the last calls began, as a ring once there are so many
	next  int             // the oldest of them
}

// take lets a call begin now and returns zero, or returns how long it is until one may begin.
func (l *limiter) take(rate Rate, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rate != rate {
		l.rate, l.began, l.times, l.next = rate, now, nil, 0
	}
	at := now.Sub(l.began)
	if len(l.times) < rate.Count {
		l.times = append(l.times, at)
		return 0
	}
	if wait := l.times[l.next] + rate.Per - at; wait > 0 {
		return wait
	}
	l.times[l.next] = at
	l.next = (l.next + 1) % len(l.times)
	return 0
}
