package holdfast

import (
	"container/heap"
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"
)

// laneRoute is the route of a lane for a while. An attempt keeps the route that it began
// with, even if the lane gets another one.
type laneRoute struct {
	Route
	batch BatchDeliverer // nil: one by one
	hand  *hand
	ended time.Time // when another took its place, or it was removed; guarded by the lane
}

func newLaneRoute(route Route) *laneRoute {
	batch, _ := route.Deliverer.(BatchDeliverer)
	return &laneRoute{Route: route, batch: batch, hand: &hand{}}
}

// same reports whether two routes are equal, as far as that can be compared.
func (route *laneRoute) same(as *laneRoute) bool {
	a, b := route.Route, as.Route
	if !reflect.ValueOf(a.Deliverer).Comparable() || !reflect.ValueOf(b.Deliverer).Comparable() || a.Deliverer != b.Deliverer {
		return false
	}
	a.Deliverer, b.Deliverer = nil, nil
	return reflect.DeepEqual(a, b)
}

// hand counts the uses of a route's deliverer, over all runs.
type hand struct {
	mu    sync.Mutex
	n     int
	ended []chan struct{} // closed when n falls to zero
}

func (h *hand) take() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.n++
}

func (h *hand) put() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.n--; h.n > 0 {
		return
	}
	for _, c := range h.ended {
		close(c)
	}
	h.ended = nil
}

// reroute is a change of route for the loop to take over; a nil route removes it.
type reroute struct {
	destination string
	route       *laneRoute
	before      *laneRoute // nil: no route
	former      chan struct{}
}

// tell arranges that former is closed once nothing by the old route is in hand. Nothing
// takes the old route any more.
func (c *reroute) tell() {
	if c.before == nil {
		close(c.former)
		return
	}
	h := c.before.hand
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.n == 0 {
		close(c.former)
		return
	}
	h.ended = append(h.ended, c.former)
}

// SetRoute adds or changes the route of a destination, also while the dispatcher runs. It
// returns at once. If the route is new, messages that already wait are tried. A change
// holds from the next attempt on. Attempts in hand end as they began, with the old
// deliverer, time-out and policy, unless the old route said CutOff. A lane that is down
// or held is probed at once if it has a due message. Attempts by the old route say
// nothing about the lane any more, but they count against the limit. People's decisions
// stand: a paused destination stays paused. A route equal to the old one changes nothing,
// and former is closed.
//
// former is closed when the old deliverer is not called any more, so that it can be
// closed. It is closed at once if there was none or nothing is in hand. An attempt that
// ignores its time-out delays it until it returns, even if its Run has ended. A deliverer
// that waits for it waits for itself. A route that was set stays for the next Run, and
// stands instead of Routes. Errors name the route. SetRoute and RemoveRoute may be called
// concurrently; of two calls for one destination, the later one holds.
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

// RemoveRoute ends deliveries to a destination from here, and forgets why it was held.
// Messages that are claimed but not begun go back uncharged. Attempts in hand end by the
// old policy, or are cut off (Route.CutOff). All other messages wait until there is a
// route again, pending, while their TTL runs on. Those who wait for one of them (Waiters)
// are told. If several nodes share a store, the others get this node's share once nothing
// is in hand. former is as in SetRoute. RemoveRoute changes nothing for a destination
// without a route, nor for EndedDestination, which belongs to the callbacks.
func (d *Dispatcher) RemoveRoute(destination string) (former <-chan struct{}) {
	if destination == EndedDestination {
		done := make(chan struct{})
		close(done)
		return done
	}
	return d.reroute(destination, nil)
}

func (d *Dispatcher) reroute(destination string, route *laneRoute) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.set == nil {
		d.set = map[string]*laneRoute{}
	}
	c := reroute{destination, route, d.current(destination), make(chan struct{})}
	if route != nil && c.before != nil && route.same(c.before) {
		d.set[destination] = c.before
		close(c.former)
		return c.former
	}
	d.set[destination] = route
	if route == nil && d.Routes[destination].Deliverer == nil {
		delete(d.set, destination) // nothing to remember
		delete(d.given, destination)
	}
	if d.live == nil {
		c.tell()
		return c.former
	}
	d.changes = append(d.changes, c)
	select {
	case d.live.reports.ring <- struct{}{}:
	default:
	}
	return c.former
}

// current returns the route of a destination as it was last set, or given to a run.
func (d *Dispatcher) current(destination string) *laneRoute {
	if route, set := d.set[destination]; set {
		return route
	}
	return d.given[destination]
}

// present returns the routes that a run begins with. The run is told of later changes.
func (d *Dispatcher) present(r *dispatch) (map[string]*laneRoute, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	routes := make(map[string]*laneRoute, len(d.Routes)+len(d.set))
	given := map[string]*laneRoute{}
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
		if before := d.given[name]; before != nil {
			routes[name].hand = before.hand // counts the uses by earlier runs, too
		}
		given[name] = routes[name]
	}
	for name, route := range d.set {
		if route != nil {
			routes[name] = route
		}
	}
	for _, c := range d.changes { // of a begin that failed: these routes include them
		c.tell()
	}
	d.given, d.live, d.changes = given, r, nil
	return routes, nil
}

// leave ends what present began. Nothing more is begun.
func (d *Dispatcher) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.changes {
		c.tell()
	}
	d.live, d.changes = nil, nil
}

// reroute takes over the changes of routes.
func (r *dispatch) reroute() {
	r.d.mu.Lock()
	changes := r.d.changes
	r.d.changes = nil
	r.d.mu.Unlock()
	for _, c := range changes {
		l := r.lanes[c.destination]
		switch {
		case l == nil && c.route != nil:
			r.add(c.destination, c.route)
		case l == nil:
		case c.route == nil:
			r.drop(l)
		default:
			if l.removed {
				l.revive()
				r.agenda.add(l)
			}
			l.change(c.route, time.Now())
			r.agenda.ask(l)
			r.start(l)
		}
		c.tell()
	}
}

// add makes the lane of a route. If the lane was held, it stays held and is probed at
// once: the fault may be gone.
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

// drop ends the lane of a removed route. While an attempt is in hand, the lane stays among
// the lanes, because the attempt counts against the limit.
func (r *dispatch) drop(l *laneRun) {
	if l.removed {
		return
	}
	l.mu.Lock()
	l.closed, l.removed = true, true
	l.route.ended = time.Now()
	l.mu.Unlock()
	r.agenda.remove(l)
	r.shut(l)
	delete(r.faulty, l.name)
	r.faults.keep(l.name, "")     // another process may hold it
	r.agenda.busy[l] = struct{}{} // until forget removes it
}

// severable returns the context of an attempt. If its route says so, it can be cut off alone.
func (l *laneRun) severable(work context.Context, a *attempt) (context.Context, context.CancelCauseFunc) {
	if !a.route.CutOff {
		return work, func(error) {}
	}
	ctx, cut := context.WithCancelCause(work)
	l.mu.Lock()
	defer l.mu.Unlock()
	a.cut = cut
	return ctx, cut
}

// cutFormer cuts off attempts in hand by old routes with CutOff.
func (r *dispatch) cutFormer(l *laneRun, now time.Time) {
	over, left := l.overdue(now.Add(-r.d.grace()))
	for _, cut := range over {
		cut(errShutdown)
	}
	if left {
		r.agenda.mark(l)
		r.start(l)
	}
}

// overdue returns the attempts to cut off: those in hand by a CutOff route that ended
// before the given time. An attempt that ignored its cut-off loses its slot; left says
// whether any has lost it now.
func (l *laneRun) overdue(before time.Time) (cuts []context.CancelCauseFunc, left bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for a := range l.inFlight {
		if a.cut == nil || a.abandoned || a.left || a.route.ended.IsZero() || a.route.ended.After(before) {
			continue
		}
		cuts = append(cuts, a.cut)
		if !a.route.ended.Add(a.route.Last).After(before) {
			a.left, left = true, true
			l.hanging++
		}
	}
	return cuts, left
}

// forget removes a lane whose route was removed, once nothing of it is in hand. It is
// called every second: a route that is set again at once keeps its share of the
// destination.
func (r *dispatch) forget(l *laneRun) {
	if !l.removed || !l.empty() || r.lanes[l.name] != l {
		return
	}
	r.mu.Lock()
	delete(r.lanes, l.name)
	r.mu.Unlock()
	if r.shared != nil {
		r.shared.Leave(l.name)
	}
}

// depart forgets the removed lanes at the end of a run, except those with attempts in hand.
func (r *dispatch) depart() {
	r.reroute()
	for _, l := range r.lanes {
		r.forget(l)
	}
}

// empty reports whether the lane has no attempt in hand.
func (l *laneRun) empty() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.inFlight) == 0
}

// isRemoved reports whether the lane's route was removed and not set again.
func (l *laneRun) isRemoved() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.removed
}

// revive resets a removed lane as if it were new. Only its attempts in hand stay.
func (l *laneRun) revive() {
	l.mu.Lock()
	defer l.mu.Unlock()
	fresh := newLaneRun(l.name, l.route)
	l.closed, l.removed, l.down, l.held, l.problem = false, false, false, false, ""
	l.streak, l.several, l.run, l.probes, l.pauses, l.hastens = 0, false, 0, 0, 0, 0
	l.limit, l.share, l.since, l.lastEnd = fresh.limit, fresh.share, fresh.since, fresh.lastEnd
	l.failing, l.moved, l.hasten, l.delayed = time.Time{}, time.Time{}, time.Time{}, nil
}

// change gives the lane another route, for attempts that begin from now on.
func (l *laneRun) change(route *laneRoute, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.share == l.route.Limit {
		l.share = route.Limit // until the next look at what others have
	}
	if l.route.ended.IsZero() {
		l.route.ended = now
	}
	l.route, l.share = route, min(l.share, route.Limit)
	l.limit = min(max(l.limit, min(startLimit, route.Limit)), route.Limit)
	if route.OwnSchedule {
		l.limit = route.Limit
	}
	l.target = min(2*route.Limit, laneClaims)
	l.resume, l.asked, l.nextProbe = time.Time{}, time.Time{}, now
}

// remove takes a lane off the agenda. If attempts are in hand, it stays in busy.
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
