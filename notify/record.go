package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// sending is what one adapter was asked in a round.
type sending struct {
	*round
	ctx     context.Context // of the attempt, for what the adapter calls
	channel string
	to      []Recipient
	written []bool // by recipient; guarded by the round
}

// known records what an adapter reports in the middle of its work.
func (s *sending) known(p Part) bool {
	var list []Target
	s.mu.Lock()
	for i, d := range p.Ends {
		if d.Outcome != Waiting && i >= 0 && i < len(s.to) && !s.written[i] {
			list = append(list, s.target(i, d, &Report{Server: p.Server, TLS: p.TLS, Truncated: p.Truncated}))
		}
	}
	s.mu.Unlock()
	return s.record(s.ctx, list)
}

// take records a report.
func (s *sending) take(report *Report) {
	own, _ := ChannelOf(s.m.Destination)
	s.served = s.served || s.channel == own && report.Served
	if f := report.Fault; f != nil && s.channel == own {
		s.fault = f
	} else if f != nil && s.fault == nil {
		c := *f // a fault of another channel neither holds this lane nor charges the message
		if c.Outcome == holdfast.LaneFault || c.Outcome == holdfast.NotStarted {
			c.Outcome = holdfast.Unreachable
		}
		s.fault = &c
	}
	var list []Target
	s.mu.Lock()
	for i := range s.to {
		if s.written[i] {
			continue
		}
		var d Delivery
		if i < len(report.To) {
			d = report.To[i]
		}
		if f := report.Fault; d.Outcome == Waiting && f != nil {
			if f.Outcome == holdfast.NotStarted {
				continue // as if never asked
			}
			d = Delivery{Outcome: Deferred, Code: f.Code, Text: clip(strings.TrimPrefix(f.Error(), f.Code+": ")), Maybe: f.MaybeDelivered, RetryAfter: f.RetryAfter}
			if f.Outcome == holdfast.Permanent {
				d.Outcome = Refused
			}
		}
		if d.Outcome == Waiting {
			d = Delivery{Outcome: Deferred, Code: "no_result", Text: "the channel did not report an outcome", Maybe: true}
		}
		list = append(list, s.target(i, d, report))
	}
	s.mu.Unlock()
	s.record(s.ctx, list)
}

// target returns the record for one recipient. The caller holds the lock.
func (s *sending) target(i int, d Delivery, about *Report) Target {
	p := &s.to[i]
	s.written[i] = true
	s.wait = max(s.wait, d.RetryAfter)
	return Target{
		Channel: s.channel, Address: p.Address, Name: p.Name, Result: d.Outcome, Code: d.Code, Text: clip(d.Text),
		Receipt: clip(d.Receipt), Maybe: d.Maybe, Attempts: s.done[key{s.channel, p.Address}].Attempts + 1, Cycle: s.m.Attempt.Cycle,
		Server: about.Server, TLS: about.TLS, Truncated: about.Truncated,
	}
}

// Pauses before recipients are recorded again; they double.
const (
	recordPause  = 50 * time.Millisecond
	recordPauses = 2 * time.Second // the longest
)

// record writes outcomes of recipients to disk and reports whether they are there. Giving up would
// mean that people are asked twice, so it tries again as long as the attempt may last. The rest is
// kept and written before the next attempt. It gives up only if the store has closed or no longer
// knows the message.
func (r *round) record(ctx context.Context, list []Target) bool {
	if len(list) == 0 {
		return true
	}
	err := r.c.write(ctx, r.m.ID, list)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.targets = append(r.targets, list...)
	if err != nil && r.lost == nil {
		r.lost = err
	}
	return err == nil
}

func (c *courier) write(ctx context.Context, id holdfast.ID, list []Target) error {
	for pause := recordPause; ; pause = min(2*pause, recordPauses) {
		// Not bound to ctx: what the other side has accepted must be recorded.
		err := c.store.RecordTargets(context.WithoutCancel(ctx), id, list...)
		if err == nil || final(err) {
			return err
		}
		c.log.ErrorContext(ctx, "recipients not recorded, trying again", slog.String("message_id", string(id)), slog.Int("count", len(list)), slog.Any("error", err))
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			c.late.mu.Lock()
			defer c.late.mu.Unlock()
			if c.late.list == nil {
				c.late.list = map[holdfast.ID][]Target{}
			}
			c.late.list[id] = append(c.late.list[id], list...)
			return err
		}
	}
}

// final reports that writing again would not help.
func final(err error) bool {
	return errors.Is(err, holdfast.ErrClosed) || errors.Is(err, holdfast.ErrNotFound) || errors.Is(err, holdfast.ErrInvalid)
}

// catchUp writes what an earlier attempt could not.
func (c *courier) catchUp(ctx context.Context, id holdfast.ID) error {
	c.late.mu.Lock()
	list := c.late.list[id]
	delete(c.late.list, id)
	c.late.mu.Unlock()
	if len(list) == 0 {
		return nil
	}
	return c.write(ctx, id, list)
}

// unrecorded is the outcome of an attempt with outcomes that are not on disk. If they can still be
// written, it charges nobody.
func unrecorded(err error, accepted bool) error {
	f := &holdfast.Failure{
		Outcome: holdfast.NotStarted, Code: "not_recorded", MaybeDelivered: accepted,
		Err: fmt.Errorf("record outcomes of recipients: %w", err),
	}
	if final(err) {
		f.Outcome = holdfast.Transient
	}
	return f
}

func accepted(list []Target) bool {
	return slices.ContainsFunc(list, func(t Target) bool { return t.Result == Accepted })
}
