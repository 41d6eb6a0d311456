package holdfast

import "strconv"

// BusyLanes is how many lanes the loop looks at each second.
func (d *Dispatcher) BusyLanes() int { return len(d.running.Load().agenda.busy) }

// KeepsSmallMaps says whether a map of n entries is used again, and how many busy lanes
// are known after all but one of n have come to rest.
func KeepsSmallMaps(n int) (again bool, busy, peak int) {
	m := map[string]int{}
	g := agenda{busy: map[*laneRun]struct{}{}}
	last := &laneRun{}
	for i := range n {
		m[strconv.Itoa(i)] = i
		last = &laneRun{}
		g.busy[last] = struct{}{}
	}
	e := emptied(m)
	e["a"] = 1
	clear(g.busy)
	g.busy[last] = struct{}{}
	g.shrink(n)
	return len(m) == 1, len(g.busy), g.peak
}

// TargetAfterPoll is the target of a busy lane after a poll of so many lanes.
func TargetAfterPoll(target, lanes int) int {
	l := newLaneRun("a", newLaneRoute(Route{Limit: 500}))
	l.target, l.filled, l.more = target, true, true
	g := agenda{look: make([]*laneRun, lanes)}
	l.want(l.since, g.most())
	return l.target
}
