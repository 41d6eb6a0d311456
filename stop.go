package holdfast

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/holdfast-mq/holdfast/internal/brief"
)

// stop is the second half of a run: first nothing more is begun, then what
// runs may end, then it is cut off.
func (r *dispatch) stop() error { return r.wind(false) }

// abort is stop for a store that takes no more outcomes: attempts are cut off
// at once, and waited for.
func (r *dispatch) abort() error { return r.wind(true) }

func (r *dispatch) wind(closed bool) error {
	for _, l := range r.agenda.all {
		l.mu.Lock()
		l.closed = true
		l.mu.Unlock()
		r.giveBack(l.incoming)
		l.incoming = nil
		r.shut(l)
	}
	grace := r.d.grace()
	if told := r.told.Load(); told != nil { // a store that hangs has taken its part of it
		grace = max(grace-time.Since(*told), 0)
	}
	var cut, returned time.Time // attempts were cut off; one has returned
	var last time.Duration      // for those that were
	var lost error              // why the store did not record outcomes
	var all bool                // nothing was in hand when the last settlement began
	if closed {
		cut, grace = time.Now(), lastWords
		r.halt(errShutdown)
	}
	end := time.NewTimer(grace)
	defer end.Stop()
	for hand := -1; ; {
		if now := r.inHand(); now != hand { // before the reports are read: they come first
			hand, returned = now, time.Now()
		}
		r.collect()
		switch {
		case closed:
			r.outbox = nil
		case !r.settling:
			all = hand == 0 // what is settled now is the last of it
			r.settle()
		}
		if hand == 0 && !r.settling && len(r.outbox) == 0 {
			r.depart()
			return nil
		}
		if !cut.IsZero() {
			end.Reset(time.Until(r.end(cut, returned, last)))
		}
		select {
		case <-r.reports.ring:
		case a := <-r.settled:
			err := r.answered(a)
			if err != nil && !closed {
				return errors.Join(err, r.abort())
			}
			lost = a.err
			// The next start tries again what is not recorded. That is worth a wait only for
			// what has an answer that took long, such as a mail: it would go twice.
			if lost != nil && all && !cut.IsZero() && !closed && last <= lastWords {
				return r.unfinished(lost)
			}
		case <-end.C:
			if !cut.IsZero() {
				if closed {
					r.depart()
					return r.stuck(lost)
				}
				return r.unfinished(lost)
			}
			cut = time.Now()
			for a := range r.hand() {
				last = max(last, a.route.Last)
			}
			r.halt(errShutdown)
		}
	}
}

// unfinished ends a run whose attempts or outcomes are not all there, and goes on with
// them for as long as the process lives.
func (r *dispatch) unfinished(lost error) error {
	err := r.stuck(lost)
	r.depart()
	r.linger()
	return err
}

func (d *Dispatcher) grace() time.Duration {
	if d.Grace == 0 {
		return 10 * time.Second
	}
	return d.Grace
}

func (r *dispatch) inHand() (n int) {
	for range r.hand() {
		n++
	}
	return n
}

// end is until when those in hand may return that were cut off, and what they came to
// may be recorded. last is the longest time that those had when they were.
func (r *dispatch) end(cut, returned time.Time, last time.Duration) time.Time {
	until := cut
	for a := range r.hand() {
		until = latest(until, cut.Add(a.route.Last))
	}
	if r.settling || len(r.outbox) > 0 {
		until = latest(until, latest(cut.Add(last), latest(cut, returned).Add(lastWords)))
	}
	return until
}

// hand goes over the attempts in hand that were not given up.
func (r *dispatch) hand() iter.Seq[*attempt] {
	return func(yield func(*attempt) bool) {
		for l := range r.agenda.busy {
			for _, a := range l.hand() {
				if !yield(a) {
					return
				}
			}
		}
	}
}

func (l *laneRun) hand() (list []*attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for a := range l.inFlight {
		if !a.abandoned {
			list = append(list, a)
		}
	}
	return list
}

// stuck names the messages whose attempts did not return, and says what is not
// recorded, for the reason that is given; nil: the store has not answered.
func (r *dispatch) stuck(lost error) error {
	var ids []string
	for l := range r.agenda.busy {
		l.mu.Lock()
		for a := range l.inFlight {
			for _, c := range a.claims {
				ids = append(ids, string(c.Message.ID))
			}
		}
		l.mu.Unlock()
	}
	var err error
	if len(ids) > 0 {
		err = fmt.Errorf("stop: attempts of %s did not return", brief.List(ids))
	}
	if n := len(r.outbox) + len(r.sent); n > 0 {
		if lost == nil {
			lost = errors.New("the store has not answered in time")
		}
		err = errors.Join(err, fmt.Errorf("stop: %d outcomes not recorded: %w", n, lost))
	}
	return err
}

// linger goes on after the run's end with what is still in hand: the process
// may go on, its claims with it, and while it lives there is no next owner who
// would take them over. What an attempt says at last is recorded, however late;
// until then its message stays claimed, and nobody sends it a second time. It
// ends with the last of them. Nobody waits for it, as nobody can wait for an
// attempt that does not return. Lanes learn nothing more: there may be a next
// run, which finds out by itself.
func (r *dispatch) linger() {
	r.lingers = true
	go func() {
		for {
			hand := r.inHand()
			r.outbox = r.reports.take(r.outbox)
			r.settle()
			if hand == 0 && !r.settling && len(r.outbox) == 0 {
				return
			}
			select {
			case <-r.reports.ring:
			case a := <-r.settled:
				if r.answered(a) != nil {
					return // the store is closed; who opens it next owns its claims
				}
			}
		}
	}()
}
