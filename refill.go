package holdfast

import (
	"context"
	"errors"
	"time"
)

// wants returns how many messages each lane can use, among the lanes that the loop looks
// at: of all, and of those that were never tried. A lane that has to wait is reminded. A lane
// that can use nothing is at rest until something happens to it.
func (r *dispatch) wants(now time.Time) (all, first map[string]int) {
	r.slots, r.firsts = emptied(r.slots), emptied(r.firsts)
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
		} else if want := l.wantFirst(now, most); want > 0 {
			r.firsts[l.name] = want
		}
	}
	clear(look[len(g.look):])
	return r.slots, r.firsts
}

// refill claims for the slots that are free and starts workers. After an error, the next event
// looks at the lanes again. What becomes of one of the two claims does not keep back the other.
func (r *dispatch) refill(ctx context.Context) error {
	if r.trouble > 0 || len(r.agenda.look) == 0 {
		return nil
	}
	all, first := r.wants(time.Now())
	var err error
	if len(all) > 0 {
		err = r.claim(ctx, all)
	}
	if len(first) > 0 {
		err = errors.Join(err, r.claimFirst(ctx, first))
	}
	return err
}

// firstRest is how long a lane asks for no first attempts after the store has failed to look for
// them. That may have taken long, and all lanes wait meanwhile.
const firstRest = time.Second

func (r *dispatch) claimFirst(ctx context.Context, first map[string]int) error {
	claims, err := r.d.Store.ClaimFirst(ctx, first)
	taken := r.receive(claims)
	for name, n := range first {
		l := r.lanes[name]
		if err != nil {
			l.noFirst = taken.Add(firstRest)
			r.agenda.remind(l, l.noFirst)
			continue
		}
		l.newer = len(l.incoming) >= n
		r.start(l)
	}
	return err
}

func (r *dispatch) claim(ctx context.Context, slots map[string]int) error {
	batch, err := r.d.Store.Claim(ctx, slots)
	if err != nil {
		return err
	}
	taken := r.receive(batch.Claims)
	claimed := r.agenda.look
	r.agenda.look = nil
	for _, l := range claimed {
		l.place.next = false
		l.more = len(l.incoming) >= slots[l.name]
		l.newer, l.filled = l.more, l.more
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

// receive hands claims to their lanes.
func (r *dispatch) receive(claims []Claim) (taken time.Time) {
	taken = time.Now()
	for _, c := range claims {
		c.taken = taken
		l := r.lanes[c.Message.Destination]
		if l == nil || l.closed { // the store gave more than it was asked for
			r.giveBack([]Claim{c})
			continue
		}
		l.incoming = append(l.incoming, c)
	}
	return taken
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
