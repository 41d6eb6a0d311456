package follow

import "sync"

// Running knows which followers run in this process. The zero value knows none. Its methods may be
// called concurrently.
type Running struct {
	mu    sync.Mutex
	names map[string]int
}

// Begin adds a follower until end is called.
func (r *Running) Begin(name string) (end func()) {
	r.add(name, 1)
	return func() { r.add(name, -1) }
}

// Has reports whether a follower of this name runs.
func (r *Running) Has(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.names[name] > 0
}

func (r *Running) add(name string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.names == nil {
		r.names = map[string]int{}
	}
	if r.names[name] += n; r.names[name] == 0 {
		delete(r.names, name)
	}
}
