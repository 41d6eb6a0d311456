package holdfast

import (
	"context"
	"sync"
	"time"
)

// Waiters are those who wait for the first outcome of a message. They must be
// told of each attempt, as part of the dispatcher's Observer. The zero value
// has none; its methods may be called concurrently.
type Waiters struct {
	mu     sync.Mutex
	list   map[ID]map[*Waiter]struct{}
	closed bool
}

// Waiter waits for the next attempt of one message.
type Waiter struct {
	of      *Waiters
	id      ID
	outcome chan AttemptInfo
}

// Expect begins to wait. It must be called before the message can be tried,
// and its Stop when nobody waits any more.
func (w *Waiters) Expect(id ID) *Waiter {
	one := &Waiter{of: w, id: id, outcome: make(chan AttemptInfo, 1)}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		close(one.outcome)
		return one
	}
	if w.list == nil {
		w.list = map[ID]map[*Waiter]struct{}{}
	}
	if w.list[id] == nil {
		w.list[id] = map[*Waiter]struct{}{}
	}
	w.list[id][one] = struct{}{}
	return one
}

// Wait returns the outcome. ok is false after the given time, at the end of
// ctx, and when all waits were ended.
func (w *Waiter) Wait(ctx context.Context, atMost time.Duration) (a AttemptInfo, ok bool) {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case a, ok = <-w.outcome:
	case <-timer.C:
	case <-ctx.Done():
	}
	return a, ok
}

// Stop ends the waiting of one.
func (w *Waiter) Stop() {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	delete(w.of.list[w.id], w)
	if len(w.of.list[w.id]) == 0 {
		delete(w.of.list, w.id)
	}
}

// ObserveAttempt tells those who wait for this message, once.
func (w *Waiters) ObserveAttempt(a AttemptInfo) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := range w.list[a.ID] {
		one.outcome <- a // it has room for the one that it gets
	}
	delete(w.list, a.ID)
}

// Release ends all waits, also those that come later: who stops keeps nobody
// waiting.
func (w *Waiters) Release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, waiting := range w.list {
		for one := range waiting {
			close(one.outcome)
		}
	}
	w.list, w.closed = nil, true
}
