package sqlite

import (
	"database/sql/driver"
	"fmt"

	"github.com/holdfast-mq/holdfast"
)

// routeKey has the names that a message shares with other messages.
type routeKey struct {
	source, destination, endpoint string
	kind                          holdfast.Kind
}

type route struct {
	route int64
	lane  *lane
}

// routeCache limits the number of names in memory: endpoints come from outside.
const routeCache = 8192

// route interns the message's names. Only the writer calls it. A rollback forgets what the
// transaction has added.
func (tx *writeTx) route(m *holdfast.Message) (route, error) {
	db := tx.w.db
	k := routeKey{m.Source, m.Destination, m.Endpoint, m.Kind}
	if tx.private != nil {
		return tx.privateRoute(k, m.OrderingKey != "")
	}
	if r, ok := db.routes[k]; ok {
		return r, nil
	}
	r, err := tx.internRoute(k)
	if err != nil {
		return r, err
	}
	if len(db.routes) >= routeCache {
		clear(db.routes)
	}
	db.routes[k] = r
	tx.undo = append(tx.undo, func() { delete(db.routes, k) })
	return r, nil
}

// privateRoute is route in a transaction of the caller. It uses the known names of committed rows,
// but reads a lane's order, because others may change it.
func (tx *writeTx) privateRoute(k routeKey, ordered bool) (route, error) {
	p := tx.private
	if r, ok := p.routes[k]; ok {
		return r, nil
	}
	if known, ok := tx.w.db.attached.names.get(k); ok && !ordered {
		l := p.lanes[k.destination]
		if l == nil {
			l = &lane{name: k.destination, id: known.lane}
		}
		return route{known.route, l}, nil
	}
	r, err := tx.internRoute(k)
	if err == nil {
		p.routes[k] = r
		tx.undo = append(tx.undo, func() { delete(p.routes, k) })
	}
	return r, err
}

func (tx *writeTx) internRoute(k routeKey) (route, error) {
	l, err := tx.lane(k.destination)
	if err != nil {
		return route{}, err
	}
	if _, err := tx.exec(insertRoute, l.id, k.source, string(k.kind), k.endpoint); err != nil {
		return route{}, err
	}
	r := route{lane: l}
	if _, err := tx.conn.one(findRoute, func(v []driver.Value) error {
		r.route = asInt(v[0])
		return nil
	}, l.id, k.source, string(k.kind), k.endpoint); err != nil {
		return route{}, err
	}
	return r, nil
}

// lane returns the destination's lane with its number.
func (tx *writeTx) lane(destination string) (*lane, error) {
	l := tx.knownLane(destination)
	if l.id != 0 {
		return l, nil
	}
	if _, err := tx.exec(insertLane, destination); err != nil {
		return nil, err
	}
	found, err := tx.conn.one(findLane, func(v []driver.Value) error {
		l.id, l.order = asInt(v[0]), asInt(v[1])
		return nil
	}, destination)
	if err == nil && !found {
		err = fmt.Errorf("lane %s: neither new nor known", destination)
	}
	if err != nil {
		return nil, err
	}
	tx.undo = append(tx.undo, func() { l.id = 0 })
	return l, nil
}

func (tx *writeTx) knownLane(destination string) *lane {
	p := tx.private
	if p == nil {
		return tx.w.db.lanes.get(destination)
	}
	l := p.lanes[destination]
	if l == nil {
		l = &lane{name: destination}
		p.lanes[destination] = l
	}
	return l
}

// routeNames is a route with its names, for claims and for people.
type routeNames struct {
	source, endpoint string
	kind             holdfast.Kind
}

// routeNames reads a route's names. Only the writer's goroutine calls it.
func (db *DB) routeNames(c *conn, id int64) (routeNames, error) {
	if n, ok := db.names[id]; ok {
		return n, nil
	}
	var n routeNames
	found, err := c.one(readRoute, func(v []driver.Value) error {
		n = routeNames{source: asText(v[0]), kind: holdfast.Kind(asText(v[1])), endpoint: asText(v[2])}
		return nil
	}, id)
	if err != nil || !found { // a message without names does not match its hash, and is parked
		return n, err
	}
	if len(db.names) >= routeCache {
		clear(db.names)
	}
	db.names[id] = n
	return n, nil
}
