package holdfast

import "sync"

// Wakes tells a store's dispatchers which destinations may have messages to claim. The
// zero value has no subscriptions. Its methods may be called concurrently and do not block.
type Wakes struct {
	mu     sync.Mutex
	list   map[*Wake]struct{}
	asking chan struct{} // full while a dispatcher asks the store for its callbacks
}

// Wake is one subscription. It keeps names until they are taken, each name once.
type Wake struct {
	C <-chan struct{} // gets a value when there is something to take

	of    *Wakes
	ring  chan struct{}
	names map[string]struct{} // guarded by of
	all   bool                // every destination may have messages; guarded by of
	asked callbacks           // the dispatcher's callbacks; guarded by of
}

// Subscribe begins a subscription. At first every destination is to be taken: messages may
// have come before.
func (w *Wakes) Subscribe() *Wake {
	ring := make(chan struct{}, 1)
	one := &Wake{C: ring, of: w, ring: ring, names: map[string]struct{}{}}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.list == nil {
		w.list, w.asking = map[*Wake]struct{}{}, make(chan struct{}, 1)
	}
	w.list[one] = struct{}{}
	one.wake("", true)
	return one
}

// Ring says that a destination may have messages to claim.
func (w *Wakes) Ring(destination string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := range w.list {
		one.wake(destination, false)
	}
}

// RingAll says that every destination may have messages to claim.
func (w *Wakes) RingAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := range w.list {
		one.wake("", true)
	}
}

// Some reports whether there are subscriptions.
func (w *Wakes) Some() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.list) > 0
}

func (w *Wake) wake(destination string, all bool) {
	switch {
	case all:
		w.all, w.names = true, emptied(w.names)
	case !w.all:
		w.names[destination] = struct{}{}
	}
	select {
	case w.ring <- struct{}{}:
	default:
	}
}

// Take appends the destinations that may have messages to claim, and forgets them. all says
// that every destination may have some.
func (w *Wake) Take(into []string) (names []string, all bool) {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	for name := range w.names {
		into = append(into, name)
	}
	w.names = emptied(w.names)
	all, w.all = w.all, false
	return into, all
}

// Stop ends the subscription.
func (w *Wake) Stop() {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	delete(w.of.list, w)
}
