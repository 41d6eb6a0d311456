package holdfast

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/holdfast-mq/holdfast/internal/brief"
)

// stop is the second half of a run. Nothing more is begun; attempts in hand may end, and
// are cut off after the grace.
func (r *dispatch) stop() error { return r.wind(false) }

// abort is stop for a store that takes no more outcomes. It cuts attempts off at once, and
// waits for them.
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
	if told := r.told.Load(); told != nil { // a store that hangs has used up part of it
		grace = max(grace-time.Since(*told), 0)
	}
	var cut, returned time.Time // when attempts were cut off, and when one last returned
	var last time.Duration      // the longest Last of the attempts that were cut off
	var lost error              // why the store did not record outcomes
	var all bool                // nothing was in hand when the last settlement began
	if closed {
		cut, grace = time.Now(), lastWords
		r.halt(errShutdown)
	}
	end := time.NewTimer(grace)
	defer end.Stop()
	for hand := -1; ; {
		if now := r.inHand(); now != hand { // counted before the reports are read: reports come first
			hand, returned = now, time.Now()
		}
		r.collect()
		switch {
		case closed:
			r.outbox = nil
		case !r.settling:
			all = hand == 0 // this is the last settlement
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
			// The next start repeats the attempts whose outcomes are not recorded.
			// Waiting longer is
			// worth it only where an answer took long, as for a mail: it would go out twice.
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

// unfinished ends a run that still has attempts or unrecorded outcomes, and lets those go
// on for as long as the process lives.
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

// end returns until when the attempts that were cut off may return, and their outcomes may
// be recorded. last is the longest time that any of them had when they were cut off.
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

// hand iterates over the attempts in hand that were not given up.
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

// stuck returns the error that names the messages whose attempts did not return, and says
// which outcomes are not recorded, because of lost. Nil: the store has not answered.
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

// linger goes on after the run's end with what is still in hand. The process may live on
// with its claims, and while it lives no next owner takes them over. So the outcome of an
// attempt is recorded however late. Until then its message stays claimed, and nobody sends
// it a second time. linger ends with the last attempt. Nobody waits for it, because nobody
// can wait for an attempt that does not return. The lanes learn nothing more: a next run
// learns by itself.
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
					return // the store is closed; its next owner takes the claims over
				}
			}
		}
	}()
}
