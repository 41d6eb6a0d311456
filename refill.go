package holdfast

import (
	"context"
	"time"
)

// wants returns how many messages each lane can use, among the lanes that the loop looks
// at. A lane that has to wait is reminded. A lane that can use nothing is at rest until
// something happens to it.
func (r *dispatch) wants(now time.Time) map[string]int {
	r.slots = emptied(r.slots)
	g := &r.agenda
	most := g.most()
	look := g.look
	g.look = g.look[:0]
	for _, l := range look {
		l.place.next = false
		want, wait := l.want(now, most)
		if wait > 0 {
			g.remind(l, now.Add(wait))
		}
		if l.route.Poll > 0 {
			g.remind(l, now.Add(l.route.Poll))
		}
		if want > 0 {
			r.slots[l.name] = want
			g.mark(l) // until it is claimed
		}
	}
	clear(look[len(g.look):])
	return r.slots
}

// refill claims for the slots that are free and starts workers.
func (r *dispatch) refill(ctx context.Context) error {
	if r.trouble > 0 || len(r.agenda.look) == 0 {
		return nil
	}
	slots := r.wants(time.Now())
	if len(slots) == 0 {
		return nil
	}
	batch, err := r.d.Store.Claim(ctx, slots)
	if err != nil {
		return err // the next event looks at them again
	}
	taken := time.Now()
	for _, c := range batch.Claims {
		c.taken = taken
		l := r.lanes[c.Message.Destination]
		if l == nil || l.closed { // the store gave more than it was asked for
			r.giveBack([]Claim{c})
			continue
		}
		l.incoming = append(l.incoming, c)
	}
	claimed := r.agenda.look
	r.agenda.look = nil
	for _, l := range claimed {
		l.place.next = false
		l.more = len(l.incoming) >= slots[l.name]
		l.filled = l.more
		r.start(l)
		next, some := batch.Next[l.name]
		if l.more && !l.withholds() {
			next, some = 0, true // the store has more than was asked for
		}
		if some {
			r.agenda.remind(l, taken.Add(max(next, time.Millisecond))) // if there is no slot, a worker rings earlier
		}
	}
	if r.agenda.look == nil {
		r.agenda.look = claimed[:0]
	}
	return nil
}

// allot asks for this dispatcher's share of each destination. If others have all of one
// now, its messages go back; if this dispatcher's share has grown, more requests begin.
func (r *dispatch) allot() {
	if r.shared == nil {
		return
	}
	for _, l := range r.agenda.look {
		r.allotTo(l)
	}
	for l := range r.agenda.busy {
		r.allotTo(l)
	}
}

// allotAway asks for the lanes that other processes have: those may be gone.
func (r *dispatch) allotAway() {
	for l := range r.agenda.away {
		r.allotTo(l)
	}
}

func (r *dispatch) allotTo(l *laneRun) {
	if l.closed {
		return
	}
	switch before, now := l.allot(r.shared.Share(l.name, l.route.Limit)); {
	case now > before:
		delete(r.agenda.away, l)
		r.start(l)
		r.agenda.ask(l)
	case now == 0:
		r.agenda.away[l] = struct{}{}
		if before > 0 {
			r.shut(l)
		}
	}
}
