package holdfast

import (
	"context"
	"sync"
	"time"
)

// Waiters holds the calls that wait for the first outcome of a message. The dispatcher
// that has them (Dispatcher.Waiters) answers with the outcome, or without one as soon as
// it knows that none will come now. The zero value has no waiters. Its methods may be
// called concurrently.
type Waiters struct {
	mu     sync.Mutex
	list   map[ID]map[*Waiter]struct{}
	closed bool
	// recording holds the messages whose outcomes are being recorded, in a store that other
	// processes have too: their rows may show the outcome before the dispatcher tells it.
	recording map[ID]struct{}
}

// Waiter waits for the next attempt of one message.
type Waiter struct {
	of          *Waiters
	id          ID
	destination string
	outcome     chan AttemptInfo
	held        bool  // guarded by of: it waits for its outcome, however long that takes
	stands      State // the state that another process's try led to; set before outcome
}

// Expect begins to wait for a message to a destination. Call it before the message can be
// tried, and call Stop when nobody waits any more.
func (w *Waiters) Expect(id ID, destination string) *Waiter {
	one := &Waiter{of: w, id: id, destination: destination, outcome: make(chan AttemptInfo, 1)}
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

// Wait returns the outcome. ok is false if none will come now: the message went back, its
// destination is not tried, or all waits were ended. It is also false at the end of ctx,
// and after the given time, unless the caller's outcome is being recorded.
func (w *Waiter) Wait(ctx context.Context, atMost time.Duration) (a AttemptInfo, ok bool) {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case a, ok = <-w.outcome:
		return a, ok
	case <-timer.C:
	case <-ctx.Done():
	}
	if !w.leave() {
		select {
		case a, ok = <-w.outcome:
		case <-ctx.Done():
		}
	}
	return a, ok
}

// leave ends one wait, unless it is held.
func (w *Waiter) leave() bool {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	if !w.held {
		w.forget()
	}
	return !w.held
}

// Stop ends the wait.
func (w *Waiter) Stop() {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	w.forget()
}

func (w *Waiter) forget() {
	delete(w.of.list[w.id], w)
	if len(w.of.list[w.id]) == 0 {
		delete(w.of.list, w.id)
	}
}

// hold keeps the waiters of a message until they are told its outcome, and reports whether
// there are any.
func (w *Waiters) hold(id ID) bool {
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := range w.list[id] {
		one.held = true
	}
	return len(w.list[id]) > 0
}

// record notes that these outcomes are about to be recorded.
func (w *Waiters) record(list []finished) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.recording == nil {
		w.recording = map[ID]struct{}{}
	}
	for i := range list {
		w.recording[list[i].claim.Message.ID] = struct{}{}
	}
}

// recorded notes that these outcomes have been told.
func (w *Waiters) recorded(list []finished) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range list {
		delete(w.recording, list[i].claim.Message.ID)
	}
}

// ObserveAttempt tells the waiters of this message, once.
func (w *Waiters) ObserveAttempt(a AttemptInfo) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := range w.list[a.ID] {
		one.outcome <- a // it has room for its one outcome
	}
	delete(w.list, a.ID)
}

// Release ends all waits, also those that begin later: a dispatcher that stops keeps
// nobody waiting.
func (w *Waiters) Release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id := range w.list {
		w.leave(id)
	}
	w.closed = true
}

// leave tells the waiters of a message that no attempt is made now.
func (w *Waiters) leave(id ID) {
	for one := range w.list[id] {
		close(one.outcome)
	}
	delete(w.list, id)
}

// postponed ends the waits for a message that is not tried now.
func (w *Waiters) postponed(id ID) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leave(id)
}

// shutAll ends the waits for the destinations that ours reports.
func (w *Waiters) shutAll(ours func(destination string) bool) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, waiting := range w.list {
		for one := range waiting {
			if ours(one.destination) { // all waiters of one id have the same destination
				w.leave(id)
			}
			break
		}
	}
}

// shut ends the waits for a destination that is not tried now. Waiters of messages in hand
// stay: they get the outcome of the attempt.
func (w *Waiters) shut(destination string, inHand func() map[ID]struct{}) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var hand map[ID]struct{} // made only if somebody waits
	for id, waiting := range w.list {
		for one := range waiting {
			if one.destination != destination {
				break // all waiters of one id have the same destination
			}
			if hand == nil {
				hand = inHand()
			}
			if _, tried := hand[id]; !tried {
				w.leave(id)
			}
			break
		}
	}
}
