package postgres

import (
	"context"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
)

// namesMost bounds the names in memory, since endpoints come from outside.
const namesMost = 8192

// routeKey is the set of names that many messages share.
type routeKey struct {
	source, destination, endpoint string
	kind                          holdfast.Kind
}

// route is the numbers that the tables have for a routeKey.
type route struct{ route, lane int32 }

// names caches the numbers of names. A name keeps its number.
type names struct {
	mu      sync.Mutex
	routes  map[routeKey]route
	keys    map[int32]routeKey // by route
	lanes   map[string]int32
	called  map[int32]string // lanes by number
	sources map[string]int32
	turn    int // counts the histories, each of which gives its own numbers
}

func newNames() *names {
	return &names{routes: map[routeKey]route{}, keys: map[int32]routeKey{}, lanes: map[string]int32{}, called: map[int32]string{}, sources: map[string]int32{}}
}

// route returns the numbers of a message's names. A separate transaction writes new names: if a
// caller's transaction wrote them, others would wait for its end.
func (db *DB) route(ctx context.Context, k routeKey) (route, error) {
	n := db.names
	n.mu.Lock()
	turn := n.turn
	r, ok := n.routes[k]
	n.mu.Unlock()
	if ok {
		return r, nil
	}
	var err error
	if r.lane, err = db.lane(ctx, k.destination); err != nil {
		return r, err
	}
	if r.route, err = db.intern(ctx, internRoute, r.lane, k.source, string(k.kind), k.endpoint); err != nil {
		return r, fmt.Errorf("route %s: %w", k.endpoint, err)
	}
	n.remember(turn, k, r)
	return r, nil
}

// forget drops all names: another history may lack the latest ones, and give their numbers to
// others.
func (n *names) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.turn++
	clear(n.routes)
	clear(n.keys)
	clear(n.lanes)
	clear(n.called)
	clear(n.sources)
}

// now returns the turn for a later remember. Call it before the look-up.
func (n *names) now() (turn int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.turn
}

func (n *names) remember(turn int, k routeKey, r route) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if turn != n.turn {
		return
	}
	if len(n.routes) >= namesMost {
		clear(n.routes)
		clear(n.keys)
	}
	n.routes[k], n.keys[r.route] = r, k
	n.lanes[k.destination], n.called[r.lane] = r.lane, k.destination
}

// lane returns the number of a destination's lane. It makes the lane if it is new.
func (db *DB) lane(ctx context.Context, destination string) (int32, error) {
	n := db.names
	n.mu.Lock()
	turn := n.turn
	id, ok := n.lanes[destination]
	n.mu.Unlock()
	if ok {
		return id, nil
	}
	id, err := db.intern(ctx, internLane, destination)
	if err != nil {
		return 0, fmt.Errorf("lane %s: %w", destination, err)
	}
	n.rememberLane(turn, destination, id)
	return id, nil
}

func (n *names) rememberLane(turn int, destination string, id int32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if turn != n.turn {
		return
	}
	n.lanes[destination], n.called[id] = id, destination
}

// lane returns the destination of a lane, if it is in memory, and otherwise "".
func (n *names) lane(id int32) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.called[id]
}

// notifies reports whether one of the rows may belong to the lane of a channel.
func (n *names) notifies(rows []*settled) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, r := range rows {
		name, known := n.called[r.hold.lane]
		if _, ok := notify.ChannelOf(name); ok || !known {
			return true
		}
	}
	return false
}

// knownLanes finds the numbers of lanes. It leaves out destinations that never had a message.
func (db *DB) knownLanes(ctx context.Context, destinations []string) (map[string]int32, error) {
	n := db.names
	known := make(map[string]int32, len(destinations))
	var unknown []string
	n.mu.Lock()
	turn := n.turn
	for _, d := range destinations {
		if id, ok := n.lanes[d]; ok {
			known[d] = id
		} else {
			unknown = append(unknown, d)
		}
	}
	n.mu.Unlock()
	if len(unknown) == 0 {
		return known, nil
	}
	err := db.read(ctx, findLanes, []any{unknown}, func(r pgx.Rows) error {
		var d string
		var id int32
		err := r.Scan(&d, &id)
		known[d] = id
		n.rememberLane(turn, d, id)
		return err
	})
	return known, err
}

// source returns the number of a sender's name.
func (db *DB) source(ctx context.Context, name string) (int32, error) {
	n := db.names
	n.mu.Lock()
	turn := n.turn
	id, ok := n.sources[name]
	n.mu.Unlock()
	if ok {
		return id, nil
	}
	id, err := db.intern(ctx, internSource, name)
	if err != nil {
		return 0, fmt.Errorf("source %s: %w", name, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.sources) >= namesMost {
		clear(n.sources)
	}
	if turn == n.turn {
		n.sources[name] = id
	}
	return id, nil
}

// intern finds or makes a row. The statement looks first. If two calls insert the row at once, the
// loser finds it at its second try.
func (db *DB) intern(ctx context.Context, sql string, args ...any) (id int32, err error) {
	for range 3 {
		err = db.read(ctx, sql, args, func(r pgx.Rows) error { return r.Scan(&id) })
		if err != nil || id != 0 {
			return id, err
		}
	}
	return 0, fmt.Errorf("%v: neither new nor known", args)
}

// routeNames reads the names of a route, which another node may have made.
func (db *DB) routeNames(ctx context.Context, id int32) (routeKey, error) {
	turn := db.names.now()
	k, ok := db.names.key(id)
	if ok {
		return k, nil
	}
	r := route{route: id}
	if err := db.read(ctx, readRoute, []any{id}, func(rows pgx.Rows) error {
		return rows.Scan(&k.source, &k.destination, &k.kind, &k.endpoint, &r.lane)
	}); err != nil {
		return k, err
	}
	if r.lane == 0 {
		return k, fmt.Errorf("route %d: %w", id, holdfast.ErrNotFound)
	}
	db.names.remember(turn, k, r)
	return k, nil
}

// key returns the names of a route, if they are in memory.
func (n *names) key(id int32) (routeKey, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	k, ok := n.keys[id]
	return k, ok
}

// number returns the lane of a destination if it is in memory, and otherwise 0.
func (n *names) number(destination string) int32 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lanes[destination]
}
