package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"
)

// round is how long one course of events takes; a longer demo has several.
const round = 30 * time.Second

// event is a part of a round: what happens at its beginning, what a person
// reads meanwhile, and its share of the time.
type event struct {
	text  string
	share float64
	begin func(ctx context.Context) error
	// until, if it is set, prolongs the event on a slow machine.
	until func() bool
}

func (d *demo) events() []event {
	lostBefore := 0
	return []event{
		{"both nodes are up", 0.15, nil, nil},
		{"the receiver was killed: messages wait at the sender", 0.2, d.killReceiver, nil},
		{"the receiver is back: what waited is delivered", 0.15, d.startReceiver, nil},
		{"acks are lost: the sender repeats, the receiver refuses the repeats", 0.15, func(context.Context) error {
			lostBefore = d.book.now().AcksLost
			d.network.lose(true)
			return nil
		}, func() bool { return d.book.now().AcksLost > lostBefore }},
		{"the receiver was killed while acks are lost, and started again at once", 0.1, func(ctx context.Context) error {
			d.kill(d.receiver)
			return d.startReceiver(ctx)
		}, nil},
		{"the sender was killed: nobody takes messages in", 0.05, func(context.Context) error {
			d.kill(d.sender)
			return nil
		}, nil},
		{"the sender is back: it goes on with what is on its disk", 0.1, d.startSender, nil},
		{"the network is whole again", 0.1, func(context.Context) error {
			d.network.lose(false)
			return nil
		}, nil},
	}
}

// script lets things happen until the time is over or stop ends, and leaves
// both nodes running and the network whole. Its error is a fault.
func (d *demo) script(stop, work context.Context) error {
	defer d.network.lose(false)
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
			// From the beginning: what one event takes too long, the next ones lack.
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
	return nil
}

// whole brings back a node that is down when the demo is interrupted.
func (d *demo) whole(work context.Context) error {
	if !d.receiver.runs() {
		if err := d.startReceiver(work); err != nil {
			return err
		}
	}
	if !d.sender.runs() {
		return d.startSender(work)
	}
	return nil
}

// last lets an event last for about that long; kills come at no round time.
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

func (d *demo) killReceiver(context.Context) error {
	d.kill(d.receiver)
	return nil
}

func (d *demo) kill(c *child) {
	c.kill()
	d.book.kill()
}

// drain waits until every accepted message has its ack and the sender holds
// nothing that waits, as long as there is progress.
func (d *demo) drain(ctx context.Context) error {
	seen, since := Counts{}, time.Now()
	for {
		c := d.book.now()
		left := d.book.unanswered()
		if left == 0 && c.Waiting == 0 && d.senderIsEmpty(ctx) {
			return nil
		}
		if c != seen {
			seen, since = c, time.Now()
		}
		if time.Since(since) > d.o.Wait {
			return fmt.Errorf("after %s without progress %d accepted messages wait for an ack, and %d sent ones for an answer%s",
				d.o.Wait, c.Waiting, left, d.lastProblem(left))
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

func (d *demo) lastProblem(left int) string {
	if p := d.producer.problem.Load(); p != nil && left > 0 {
		return ": " + *p
	}
	return ""
}

// senderIsEmpty asks the sender whether anything waits with it.
func (d *demo) senderIsEmpty(ctx context.Context) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, *d.producer.sender.Load()+"/_rf/outbox/stats", nil)
	if err != nil {
		return false
	}
	resp, err := d.sender.client.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close() //nolint:errcheck // a probe
	var stats struct {
		Pending *int `json:"pending"`
	}
	err = json.NewDecoder(io.LimitReader(resp.Body, maxBody)).Decode(&stats)
	return err == nil && stats.Pending != nil && *stats.Pending == 0
}
