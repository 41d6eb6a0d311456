package holdfast

import (
	"maps"
	"slices"
	"strings"
)

// Status returns the lanes as they are now. If no Progress was given, it also returns the
// destinations without a route whose messages wait. It is empty before Run.
func (d *Dispatcher) Status() []LaneStatus {
	r := d.running.Load()
	if r == nil {
		return nil
	}
	list := r.statuses()
	p := d.watch.Load()
	if p == nil {
		return list
	}
	standing, _ := p.Standstills() // the watch handles a store that cannot be asked
	at := 0                        // both lists are sorted
	for _, s := range standing {
		for at < len(list) && list[at].Destination < s.Destination {
			at++
		}
		switch {
		case at < len(list) && list[at].Destination == s.Destination:
			list[at].Standstill = &s
		case d.Progress == nil:
			list = slices.Insert(list, at, LaneStatus{Destination: s.Destination, Standstill: &s})
		}
	}
	return list
}

// Unserved returns by name the destinations that have due messages but no deliverer, here
// or anywhere as Progress.Known says, as of the watch's last look. Their messages stay
// pending (SF-11). It asks no database.
func (d *Dispatcher) Unserved() (names []string) {
	p := d.watch.Load()
	if p == nil {
		return nil
	}
	standing, _ := p.Standstills()
	for _, s := range standing {
		if s.Cause == CauseNoRoute {
			names = append(names, s.Destination)
		}
	}
	return names
}

// Lane reports the lane of one destination as Status does, at a cost that does not depend
// on the number of lanes. If this dispatcher has no lane for it, the LaneStatus is zero.
// known is false before Run: it is not known yet who delivers.
func (d *Dispatcher) Lane(destination string) (s LaneStatus, known bool) {
	r := d.running.Load()
	if r == nil {
		return LaneStatus{}, false
	}
	r.mu.RLock()
	l := r.lanes[destination]
	r.mu.RUnlock()
	if l == nil || l.isRemoved() {
		return LaneStatus{}, true
	}
	s = l.status()
	s.Owner = r.owner()
	if p := d.watch.Load(); p != nil {
		s.Standstill = p.standstill(destination)
	}
	return s, true
}

func (r *dispatch) statuses() []LaneStatus {
	owner := r.owner()
	r.mu.RLock()
	lanes := slices.Collect(maps.Values(r.lanes))
	r.mu.RUnlock()
	lanes = slices.DeleteFunc(lanes, (*laneRun).isRemoved)
	slices.SortFunc(lanes, func(a, b *laneRun) int { return strings.Compare(a.name, b.name) })
	list := make([]LaneStatus, len(lanes))
	for i, l := range lanes {
		list[i] = l.status()
		list[i].Owner = owner
	}
	return list
}

// ObserverFailures returns how many calls of the Observer have panicked.
func (d *Dispatcher) ObserverFailures() int64 { return d.observer.Load() }
