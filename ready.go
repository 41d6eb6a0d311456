package holdfast

import (
	"container/heap"
	"maps"
	"time"
)

// The loop's work grows with the lanes that have something to do, not with all lanes. It
// looks at a lane when something may have changed for it: a wake-up names it, an attempt
// or a settlement has ended, or its alarm rings. A lane at rest costs its place in memory,
// and now and then a question of the backstop.

// pollLanes is how many lanes one poll asks for. The next poll takes the next ones.
const pollLanes = 1000

// agenda says which lanes the loop looks at, and when. Only the loop uses it.
type agenda struct {
	all    []*laneRun            // each at its place.at
	turn   int                   // where the next poll goes on
	look   []*laneRun            // lanes to look at now
	alarms alarms                // lanes to look at later
	busy   map[*laneRun]struct{} // lanes that are not at rest
	away   map[*laneRun]struct{} // lanes whose requests are all other processes'
	peak   int                   // the largest size that busy has had
	names  []string              // the names of a wake-up, reused
}

// place is where a lane stands in the agenda.
type place struct {
	at    int       // in all
	next  bool      // the loop will look at it
	alarm time.Time // when the loop looks at it again
	heap  int       // its place among the alarms, from 1; 0: not there
}

func (g *agenda) add(l *laneRun) {
	l.place.at = len(g.all)
	g.all = append(g.all, l)
	g.mark(l)
}

// mark makes the loop look at a lane.
func (g *agenda) mark(l *laneRun) {
	if !l.place.next && !l.closed {
		l.place.next = true
		g.look = append(g.look, l)
	}
}

// ask makes the loop ask the store for messages of a lane.
func (g *agenda) ask(l *laneRun) {
	l.more, l.newer = true, true
	g.mark(l)
}

// askAll makes the loop ask for all lanes.
func (g *agenda) askAll() {
	for _, l := range g.all {
		g.ask(l)
	}
}

// poll makes the loop ask for the next lanes. A lane with a poll interval of its own has an
// alarm for it.
func (g *agenda) poll() {
	for range min(pollLanes, len(g.all)) {
		if g.turn >= len(g.all) {
			g.turn = 0
		}
		if l := g.all[g.turn]; l.route.Poll == 0 {
			g.ask(l)
		}
		g.turn++
	}
}

// smallMap is the size up to which a map is used again. To clear a map, or to go over it,
// costs as much as its largest size so far.
const smallMap = 1000

// emptied returns a map without entries: the given one if it is small.
func emptied[V any](m map[string]V) map[string]V {
	if len(m) > smallMap {
		return map[string]V{}
	}
	clear(m)
	return m
}

// shrink makes the agenda small again after it held many lanes that are now at rest. held
// is how many it held before.
func (g *agenda) shrink(held int) {
	g.peak = max(g.peak, held)
	if g.peak <= smallMap || len(g.busy) > g.peak/4 {
		return
	}
	busy := make(map[*laneRun]struct{}, len(g.busy))
	maps.Copy(busy, g.busy)
	g.busy, g.peak = busy, len(busy)
}

// remind makes the loop look at a lane again at the given time or before.
func (g *agenda) remind(l *laneRun, at time.Time) {
	switch {
	case l.closed:
	case l.place.heap == 0:
		l.place.alarm = at
		heap.Push(&g.alarms, l)
	case at.Before(l.place.alarm):
		l.place.alarm = at
		heap.Fix(&g.alarms, l.place.heap-1)
	}
}

// ring makes the loop ask for the lanes whose time has come.
func (g *agenda) ring(now time.Time) {
	for len(g.alarms) > 0 && !now.Before(g.alarms[0].place.alarm) {
		g.ask(heap.Pop(&g.alarms).(*laneRun))
	}
}

// nextAlarm returns when the first alarm rings, or the given time if that is earlier.
func (g *agenda) nextAlarm(or time.Time) time.Time {
	if len(g.alarms) > 0 && g.alarms[0].place.alarm.Before(or) {
		return g.alarms[0].place.alarm
	}
	return or
}

// most returns how many claims a lane may hold: an equal part of the room, divided among
// the lanes that hold any.
func (g *agenda) most() int {
	return min(max(heldClaims/max(len(g.busy), len(g.look), 1), startLimit), laneClaims)
}

// alarms is a heap with the earliest alarm on top.
type alarms []*laneRun

func (h *alarms) Len() int           { return len(*h) }
func (h *alarms) Less(i, j int) bool { return (*h)[i].place.alarm.Before((*h)[j].place.alarm) }
func (h *alarms) Swap(i, j int) {
	list := *h
	list[i], list[j] = list[j], list[i]
	list[i].place.heap, list[j].place.heap = i+1, j+1
}

func (h *alarms) Push(x any) {
	l := x.(*laneRun)
	*h = append(*h, l)
	l.place.heap = len(*h)
}

func (h *alarms) Pop() any {
	last := len(*h) - 1
	l := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	l.place.heap = 0
	return l
}
