package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Counts are what the ledger has seen: the counts of orders, and a tally for each other sort.
type Counts struct {
	Sent              int `json:"sent"`               // ids that a site accepted
	Waiting           int `json:"waiting"`            // of these, those whose ack has not come through
	Delivered         int `json:"delivered"`          // ids whose ack came through to the site
	Effects           int `json:"effects"`            // ids that took effect exactly once
	DuplicatesRefused int `json:"duplicates_refused"` // repeats without an effect, RepeatedCalls among them
	RepeatedCalls     int `json:"repeated_calls"`     // repeats that only the program recognised, by their key
	AcksLost          int `json:"acks_lost"`          // acks of central that the network lost
	Kills             int `json:"kills"`              // of a node, by SIGKILL
	Lost              int `json:"lost"`               // ids without an effect: so far the acknowledged ones, at the end all accepted ones
	Doubled           int `json:"doubled"`            // ids that took effect more than once
	Foreign           int `json:"foreign"`            // ids that took effect but were never sent

	Notifications Tally `json:"notifications"` // an effect means that all its mails have come
	Mails         Tally `json:"mails"`         // a notification for one recipient
	Calls         Tally `json:"calls"`
	Writes        Tally `json:"writes"`
}

// Err lists the broken promises.
func (c *Counts) Err() error {
	var all []error
	for _, f := range []struct {
		n    int
		what string
	}{
		{c.Lost, "accepted messages had no effect"},
		{c.Doubled, "messages took effect more than once"},
		{c.Foreign, "effects belong to no message that was sent"},
	} {
		if f.n > 0 {
			all = append(all, fmt.Errorf("%d %s", f.n, f.what))
		}
	}
	for _, t := range c.tallies() {
		all = append(all, t.tally.err(t.name))
	}
	return errors.Join(all...)
}

// ledger is the demo's own book, outside of all nodes. It knows an order by its message id, and an
// effect by the order that the payload names. So it takes neither side's word for the other's.
type ledger struct {
	mu     sync.Mutex
	file   io.Writer // one line of JSON per call; nil: no file
	orders map[string]*ordered
	keys   map[string]struct{} // Idempotency-Keys that the program has seen
	counts Counts

	accounts map[string]account // of notifications, calls and writes, by the beginning of their ids
	mails    account
}

type ordered struct {
	tried, accepted, acked bool
	effects                int
}

func newLedger(file io.Writer) *ledger {
	l := &ledger{file: file, orders: map[string]*ordered{}, keys: map[string]struct{}{}}
	l.mails = newAccount(&l.counts.Mails)
	l.accounts = map[string]account{
		notification: newAccount(&l.counts.Notifications), call: newAccount(&l.counts.Calls), write: newAccount(&l.counts.Writes),
	}
	return l
}

// change books one order, and updates the counts.
func (l *ledger) change(id string, f func(o *ordered)) {
	o, ok := l.orders[id]
	if !ok {
		o = &ordered{}
		l.orders[id] = o
	}
	l.weigh(o, -1)
	f(o)
	l.weigh(o, +1)
}

func (l *ledger) weigh(o *ordered, by int) {
	for _, c := range []struct {
		counted bool
		in      *int
	}{
		{o.accepted, &l.counts.Sent},
		{o.accepted && !o.acked, &l.counts.Waiting},
		{o.acked, &l.counts.Delivered},
		{o.effects == 1, &l.counts.Effects},
		{o.acked && o.effects == 0, &l.counts.Lost},
		{o.effects > 1, &l.counts.Doubled},
		{o.effects > 0 && !o.tried, &l.counts.Foreign},
	} {
		if c.counted {
			*c.in += by
		}
	}
}

// reply books central's answer about an order. passed says whether the answer goes on to the site.
func (l *ledger) reply(id string, ack, duplicate, passed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if duplicate {
		l.counts.DuplicatesRefused++
	}
	switch {
	case ack && passed:
		l.change(id, func(o *ordered) { o.acked = true })
	case ack:
		l.counts.AcksLost++
	}
}

// call books a call of the program. It is an effect if the key is new. The program promises one
// effect per key, because a forward happens at least once.
func (l *ledger) call(key, id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, repeat := l.keys[key]
	if err := l.note(id, map[string]any{"key": key, "order": id, "repeat": repeat}); err != nil {
		return err
	}
	if repeat {
		l.counts.RepeatedCalls++
		l.counts.DuplicatesRefused++
		return nil
	}
	l.keys[key] = struct{}{}
	l.change(id, func(o *ordered) { o.effects++ })
	return nil
}

// note writes a line into the file before anything is counted: what is not in the file has not happened.
func (l *ledger) note(id string, entry map[string]any) error {
	if l.file == nil {
		return nil
	}
	line, err := json.Marshal(entry)
	if err != nil {
		return fmt.Errorf("book %s: %w", id, err)
	}
	if _, err := l.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("book %s: %w", id, err)
	}
	return nil
}

func (l *ledger) kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.Kills++
}

// now returns the present counts.
func (l *ledger) now() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts
}

// unanswered returns how many ids were sent but not accepted yet.
func (l *ledger) unanswered() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, o := range l.orders {
		if o.tried && !o.accepted {
			n++
		}
	}
	for _, a := range l.accounts {
		n += a.unanswered()
	}
	return n
}

// final returns the counts when nothing more will come. Then an accepted id without an effect is
// lost, acknowledged or not.
func (l *ledger) final() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.counts
	c.Lost = 0
	for _, o := range l.orders {
		if (o.accepted || o.acked) && o.effects == 0 {
			c.Lost++
		}
	}
	for _, t := range c.tallies() {
		t.tally.Lost = t.tally.Waiting
	}
	return c
}
