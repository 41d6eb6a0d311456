package sqlite

import "sync"

// names are interned routes of committed rows. The caller's transactions use them beside the
// writer, whose own maps also hold uncommitted names.
type names struct {
	mu     sync.Mutex
	routes map[routeKey]committedRoute
}

type committedRoute struct{ route, lane int64 }

func newNames() *names { return &names{routes: map[routeKey]committedRoute{}} }

func (n *names) put(k routeKey, route, lane int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.routes) >= routeCache {
		clear(n.routes)
	}
	n.routes[k] = committedRoute{route, lane}
}

func (n *names) get(k routeKey) (committedRoute, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r, ok := n.routes[k]
	return r, ok
}
