package demo

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// round is how long one sequence of events takes; a longer demo has several rounds.
const round = 30 * time.Second

// event is a part of a round: what happens at its beginning, its text for people, and its share of the time.
type event struct {
	text  string
	share float64
	begin func(ctx context.Context) error
	// until, if set, prolongs the event on a slow machine.
	until func() bool
}

func (d *demo) events() []event {
	return append(d.linkEvents(), d.placeEvents()...)
}

// linkEvents are the events at the nodes and between them.
func (d *demo) linkEvents() []event {
	before := Counts{}
	return []event{
		{"two sites and central are up", 0.1, d.whole, nil},
		{"central was killed: what is for it waits at the sites", 0.14, func(context.Context) error {
			d.kill(d.central)
			return nil
		}, nil},
		{"central is back: what waited is delivered", 0.1, d.startCentral, nil},
		{"acks of central are lost: the sites repeat, it refuses the repeats", 0.12, func(context.Context) error {
			before = d.book.now()
			d.network.lose(true)
			return nil
		}, func() bool { return d.book.now().AcksLost > before.AcksLost }},
		{"central was killed while acks are lost, and started again at once", 0.06, func(ctx context.Context) error {
			d.kill(d.central)
			return d.startCentral(ctx)
		}, nil},
		{"plant-1 was killed: plant-2 does not notice", 0.06, func(context.Context) error {
			d.kill(d.plants[0].child)
			return nil
		}, nil},
		{"plant-1 is back: it goes on with what is on its disk", 0.08, d.plants[0].startNode, nil},
		{"the network is whole again", 0.04, func(context.Context) error {
			d.network.lose(false)
			return nil
		}, nil},
	}
}

// placeEvents are the events at the places that the nodes deliver to.
func (d *demo) placeEvents() []event {
	be := func(mail, target mood) func(context.Context) error {
		return func(context.Context) error {
			d.mail.be(mail)
			d.target.be(target)
			return nil
		}
	}
	return []event{
		{"the mail server is away: mail waits at central", 0.08, be(failing, fine), nil},
		{"the target answers 500: calls wait at the sites", 0.06, be(fine, failing), d.target.shown},
		{"the target refuses some for good, with 422: these are not tried again", 0.06, be(fine, refusing), d.target.shown},
		{"target and mail server do the work, and answers are lost", 0.06, be(forgetful, forgetful), d.target.shown},
		{"somebody locks the database: writes wait at the sites", 0.04, func(ctx context.Context) error {
			return errors.Join(be(fine, fine)(ctx), d.database.lock(ctx, true))
		}, nil},
	}
}

// script runs the events until the time is over or stop ends. It leaves all nodes running and
// everything else working. Its error is a fault.
func (d *demo) script(stop, work context.Context) error {
	rounds := max(1, int((d.o.Length+round/2)/round))
	until, cancel := context.WithDeadline(stop, d.began.Add(d.o.Length))
	defer cancel()
	for n := range rounds {
		share := 0.0
		for _, e := range d.events() {
			if e.begin != nil {
				if err := e.begin(work); err != nil {
					return err
				}
			}
			d.phase(e.text)
			share += e.share
			// Counted from the beginning: if one event takes too long, the next ones are shorter.
			end := d.began.Add(time.Duration((float64(n) + share) / float64(rounds) * float64(d.o.Length)))
			if err := d.last(stop, work, e, time.Until(end)); err != nil {
				return err
			}
			if stop.Err() != nil {
				return d.whole(work)
			}
		}
	}
	<-until.Done()
	return d.whole(work)
}

// whole ends all troubles, even if the demo was interrupted in one.
func (d *demo) whole(work context.Context) error {
	d.network.lose(false)
	d.mail.be(fine)
	d.target.be(fine)
	if err := d.database.lock(work, false); err != nil {
		return err
	}
	if !d.central.runs() {
		if err := d.startCentral(work); err != nil {
			return err
		}
	}
	for _, p := range d.plants {
		if !p.runs() {
			if err := p.startNode(work); err != nil {
				return err
			}
		}
	}
	return nil
}

// last makes an event last for about the given time. A random part keeps kills from coming at regular times.
func (d *demo) last(stop, work context.Context, e event, length time.Duration) error {
	length += time.Duration((rand.Float64() - 0.5) * 0.3 * e.share * float64(min(round, d.o.Length))) //nolint:gosec // no secret
	both, cancel := context.WithCancelCause(stop)
	defer cancel(nil)
	defer context.AfterFunc(work, func() { cancel(context.Cause(work)) })()
	_ = pause(both, length)
	limit := time.Now().Add(d.o.Wait)
	for e.until != nil && !e.until() && both.Err() == nil && time.Now().Before(limit) {
		_ = pause(both, 10*time.Millisecond)
	}
	return context.Cause(work)
}

func (d *demo) kill(c *child) {
	c.kill()
	d.book.kill()
}
