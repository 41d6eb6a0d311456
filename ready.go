package holdfast

import (
	"container/heap"
	"maps"
	"time"
)

// What the loop does costs as much as the lanes that have something to do, however
// many there are: a lane is looked at when something may have changed for it, it is
// named by a wake-up, by the end of an attempt or a settlement, or by its alarm. A
// lane at rest costs its place in memory, and a question of the backstop every now
// and then.

// pollLanes is how many lanes one poll asks for, the next ones with each.
const pollLanes = 1000

// agenda is which lanes the loop looks at, and when. It is the loop's.
type agenda struct {
	all    []*laneRun            // each at its place
	turn   int                   // of the poll
	look   []*laneRun            // now
	alarms alarms                // later
	busy   map[*laneRun]struct{} // that are not at rest
	away   map[*laneRun]struct{} // of which others have every request
	peak   int                   // the most that busy has held
	names  []string              // what a wake-up named, used again
}

// place is where a lane stands in the agenda.
type place struct {
	at    int       // in all
	next  bool      // it is looked at
	alarm time.Time // when it is looked at again
	heap  int       // its place among the alarms, from 1; 0: none
}

func (g *agenda) add(l *laneRun) {
	l.place.at = len(g.all)
	g.all = append(g.all, l)
	g.mark(l)
}

// mark has a lane looked at.
func (g *agenda) mark(l *laneRun) {
	if !l.place.next && !l.closed {
		l.place.next = true
		g.look = append(g.look, l)
	}
}

// ask has the store asked for a lane.
func (g *agenda) ask(l *laneRun) {
	l.more = true
	g.mark(l)
}

// askAll has it asked for all.
func (g *agenda) askAll() {
	for _, l := range g.all {
		g.ask(l)
	}
}

// poll has it asked for the next ones. A lane that has a poll of its own has an alarm
// for it.
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

// smallMap is up to how many entries a map is used again: to clear one, or to go over
// it, costs as much as the most that it has held.
const smallMap = 1000

// emptied is a map without entries, the given one if it is small.
func emptied[V any](m map[string]V) map[string]V {
	if len(m) > smallMap {
		return map[string]V{}
	}
	clear(m)
	return m
}

// shrink makes what held many lanes that are at rest now small again. held is how
// many it held before.
func (g *agenda) shrink(held int) {
	g.peak = max(g.peak, held)
	if g.peak <= smallMap || len(g.busy) > g.peak/4 {
		return
	}
	busy := make(map[*laneRun]struct{}, len(g.busy))
	maps.Copy(busy, g.busy)
	g.busy, g.peak = busy, len(busy)
}

// remind has a lane looked at again at the given time, or before.
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

// ring asks for the lanes whose time has come.
func (g *agenda) ring(now time.Time) {
	for len(g.alarms) > 0 && !now.Before(g.alarms[0].place.alarm) {
		g.ask(heap.Pop(&g.alarms).(*laneRun))
	}
}

// nextAlarm is when the first alarm rings, if that is before the given time.
func (g *agenda) nextAlarm(or time.Time) time.Time {
	if len(g.alarms) > 0 && g.alarms[0].place.alarm.Before(or) {
		return g.alarms[0].place.alarm
	}
	return or
}

// most is how many claims a lane may hold: its part of the room that those have
// that hold any.
func (g *agenda) most() int {
	return min(max(heldClaims/max(len(g.busy), len(g.look), 1), startLimit), laneClaims)
}

// alarms is a heap, the first one on top.
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
