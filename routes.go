package holdfast

import (
	"container/heap"
	"fmt"
	"time"
)

// laneRoute is a lane's route for a while: an attempt keeps the one that it began
// with, whatever the lane has next.
type laneRoute struct {
	Route
	batch BatchDeliverer // nil: one by one
}

func newLaneRoute(route Route) *laneRoute {
	batch, _ := route.Deliverer.(BatchDeliverer)
	return &laneRoute{route, batch}
}

// reroute is a route that the loop is to take over; nil: to remove.
type reroute struct {
	destination string
	route       *laneRoute
	former      chan struct{}
}

// former is a route that a lane has no more.
type former struct {
	route *laneRoute
	done  chan struct{} // closed when no attempt by it is in hand
}

// SetRoute adds the route of a destination, or changes it, also while the
// dispatcher runs. It returns at once. Messages of a new route that wait already
// are tried; a changed one holds from the next attempt on: what is in hand ends
// as it began, by the deliverer, time-out and policy of before. A lane that is
// down or held is probed at once, if it has a message that is due. What a person has decided stands: a destination
// that is paused stays paused.
//
// former is closed when the deliverer of before is not called any more, so that
// it can be closed; at once where there was none, or nothing is in hand, but not
// before an attempt that ignores its time-out returns. What was set stays for the
// next Run, and stands instead of Routes. Errors name the route. SetRoute and
// RemoveRoute may be called concurrently; of two calls for one destination the
// later one holds.
func (d *Dispatcher) SetRoute(destination string, route Route) (former <-chan struct{}, err error) {
	if err := checkName("destination", destination); err != nil {
		return nil, fmt.Errorf("%w: route %s: %w", ErrInvalid, clip(destination), err)
	}
	if destination == EndedDestination {
		return nil, errEndedRoute
	}
	if err := route.check(destination); err != nil {
		return nil, fmt.Errorf("%w: route %s: %w", ErrInvalid, destination, err)
	}
	return d.reroute(destination, newLaneRoute(route)), nil
}

// RemoveRoute has nobody deliver to a destination from here, and says why it
// was held no more. Messages that are claimed and not begun go back uncharged,
// attempts in hand end by the policy of before, and all others wait until there is
// a route again, as those of a destination without one do: pending, their TTL
// running on. Who waits for one (Waiters) is told. Of several nodes that share a
// store the others have its part. former is as in SetRoute. A destination without
// a route is left as it is, and so is EndedDestination: it is the callbacks' own.
func (d *Dispatcher) RemoveRoute(destination string) (former <-chan struct{}) {
	if destination == EndedDestination {
		done := make(chan struct{})
		close(done)
		return done
	}
	return d.reroute(destination, nil)
}

func (d *Dispatcher) reroute(destination string, route *laneRoute) <-chan struct{} {
	done := make(chan struct{})
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.set == nil {
		d.set = map[string]*laneRoute{}
	}
	d.set[destination] = route
	if route == nil && d.Routes[destination].Deliverer == nil {
		delete(d.set, destination) // nothing to remember
	}
	if d.live == nil {
		close(done)
		return done
	}
	d.changes = append(d.changes, reroute{destination, route, done})
	select {
	case d.live.reports.ring <- struct{}{}:
	default:
	}
	return done
}

// present are the routes that a run begins with; what changes from here on it is told.
func (d *Dispatcher) present(r *dispatch) (map[string]*laneRoute, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	routes := make(map[string]*laneRoute, len(d.Routes)+len(d.set))
	for name, route := range d.Routes {
		if _, other := d.set[name]; other {
			continue
		}
		if name == EndedDestination {
			return nil, errEndedRoute
		}
		if err := route.check(name); err != nil {
			return nil, fmt.Errorf("%w: route %s: %w", ErrInvalid, name, err)
		}
		routes[name] = newLaneRoute(route)
	}
	for name, route := range d.set {
		if route != nil {
			routes[name] = route
		}
	}
	for _, c := range d.changes { // of a begin that failed: they are among these routes
		close(c.former)
	}
	d.live, d.changes = r, nil
	return routes, nil
}

// leave ends what present began: nothing is in hand any more.
func (d *Dispatcher) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.changes {
		close(c.former)
	}
	d.live, d.changes = nil, nil
}

// reroute takes over what has changed.
func (r *dispatch) reroute() {
	r.d.mu.Lock()
	changes := r.d.changes
	r.d.changes = nil
	r.d.mu.Unlock()
	for _, c := range changes {
		l := r.lanes[c.destination]
		switch {
		case l != nil && c.route != nil:
			l.formers = append(l.formers, former{l.route, c.former})
			l.change(c.route, time.Now())
			r.agenda.ask(l)
			r.start(l)
			l.retire()
		case l != nil:
			l.formers = append(l.formers, former{l.route, c.former})
			r.drop(l)
			l.retire()
		default:
			if c.route != nil {
				r.add(c.destination, c.route)
			}
			close(c.former)
		}
	}
}

// add makes the lane of a route. One that was held stays so, and is probed at
// once: the fault may be mended.
func (r *dispatch) add(name string, route *laneRoute) {
	l := newLaneRun(name, route)
	if r.decisions.done != nil {
		l.decision = (*r.decisions.done)[name]
	}
	if problem := r.faulty[name]; problem != "" {
		l.hold(problem, time.Now())
		r.agenda.busy[l] = struct{}{}
	}
	r.mu.Lock()
	r.lanes[name] = l
	r.mu.Unlock()
	r.agenda.add(l)
}

// drop ends the lane of a route that is removed.
func (r *dispatch) drop(l *laneRun) {
	r.mu.Lock()
	delete(r.lanes, l.name)
	r.mu.Unlock()
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	r.agenda.remove(l)
	r.shut(l)
	delete(r.faulty, l.name)
	if l.held {
		r.faults.keep(l.name, "")
	}
	if r.shared != nil {
		r.shared.Leave(l.name)
	}
}

// change gives the lane another route, for what begins from now on.
func (l *laneRun) change(route *laneRoute, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.share == l.route.Limit {
		l.share = route.Limit // until the next look at what others have
	}
	l.route, l.share = route, min(l.share, route.Limit)
	l.limit = min(max(l.limit, min(startLimit, route.Limit)), route.Limit)
	if route.OwnSchedule {
		l.limit = route.Limit
	}
	l.target = min(2*route.Limit, laneClaims)
	l.resume, l.asked, l.nextProbe = time.Time{}, time.Time{}, now
}

// retire tells of former routes of which nothing is in hand.
func (l *laneRun) retire() {
	if len(l.formers) == 0 {
		return
	}
	l.mu.Lock()
	used := map[*laneRoute]bool{}
	for a := range l.inFlight {
		used[a.route] = true
	}
	l.mu.Unlock()
	rest := l.formers[:0]
	for _, f := range l.formers {
		if used[f.route] {
			rest = append(rest, f)
		} else {
			close(f.done)
		}
	}
	clear(l.formers[len(rest):])
	l.formers = rest
}

// remove takes a lane off the agenda, but for what of it is in hand.
func (g *agenda) remove(l *laneRun) {
	last := len(g.all) - 1
	g.all[l.place.at] = g.all[last]
	g.all[l.place.at].place.at = l.place.at
	g.all[last] = nil
	g.all = g.all[:last]
	if l.place.heap > 0 {
		heap.Remove(&g.alarms, l.place.heap-1)
	}
	delete(g.away, l)
}
