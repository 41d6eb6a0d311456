package holdfast

// BusyLanes is how many lanes the loop looks at each second.
func (d *Dispatcher) BusyLanes() int { return len(d.running.Load().agenda.busy) }

// TargetAfterPoll is the target of a busy lane after a poll of so many lanes.
func TargetAfterPoll(target, lanes int) int {
	l := newLaneRun("a", newLaneRoute(Route{Limit: 500}))
	l.target, l.filled, l.more = target, true, true
	g := agenda{look: make([]*laneRun, lanes)}
	l.want(l.since, g.most())
	return l.target
}
