package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/internal/brief"
	"github.com/holdfast-mq/holdfast/notify"
)

// copyDecision is a person's decision about the copies of one notification. Each copy is a message, and the
// verb applies to messages.
type copyDecision struct {
	verb    holdfast.Verb
	channel string          // empty: all channels
	only    []notify.Status // empty: copies of any status that the verb starts from
	do      func(ctx context.Context, of holdfast.Outbox, id holdfast.ID) (holdfast.Record, error)
}

// Retry makes the parked and discarded copies of a notification pending again. site may be empty if only one
// site has sent the id. This holds for the methods below, too.
func (s Notifications) Retry(ctx context.Context, site, id string, req *api.RetryNotification, wrong ...api.Fault) (api.DecidedNotification, error) {
	return s.decideCopies(ctx, site, id, wrong, retryCopies(req.Channel))
}

func retryCopies(channel string) copyDecision {
	return copyDecision{verb: holdfast.VerbRequeue, channel: channel, do: func(ctx context.Context, of holdfast.Outbox, id holdfast.ID) (holdfast.Record, error) {
		return of.Requeue(ctx, id, holdfast.Requeue{Actor: Actor(ctx)})
	}}
}

func discardCopies(channel string) copyDecision {
	return copyDecision{verb: holdfast.VerbDiscard, channel: channel, do: func(ctx context.Context, of holdfast.Outbox, id holdfast.ID) (holdfast.Record, error) {
		return of.Discard(ctx, id, Actor(ctx))
	}}
}

func rescheduleCopies(channel string, wait time.Duration) copyDecision {
	return copyDecision{verb: holdfast.VerbReschedule, channel: channel, do: func(ctx context.Context, of holdfast.Outbox, id holdfast.ID) (holdfast.Record, error) {
		return of.Reschedule(ctx, id, holdfast.Reschedule{In: wait, Actor: Actor(ctx)})
	}}
}

// Discard gives up the copies of a notification that are not delivered.
func (s Notifications) Discard(ctx context.Context, site, id string, req *api.DiscardNotification, wrong ...api.Fault) (api.DecidedNotification, error) {
	wrong = withoutRepeats(append(wrong, checkLine("reason", req.Reason, mostLongText)...))
	out, err := s.decideCopies(ctx, site, id, wrong, discardCopies(req.Channel))
	if err == nil {
		s.noted(ctx, "notification discarded", slog.String("message_id", out.ID), slog.String("site", out.Site), slog.String("reason", req.Reason))
	}
	return out, err
}

// Run makes the pending copies of a notification due at once.
func (s Notifications) Run(ctx context.Context, site, id string, req *api.RunNotification, wrong ...api.Fault) (api.DecidedNotification, error) {
	return s.decideCopies(ctx, site, id, wrong, rescheduleCopies(req.Channel, 0))
}

// Reschedule sets when the pending copies of a notification are tried next.
func (s Notifications) Reschedule(ctx context.Context, site, id string, req *api.RescheduleNotification, wrong ...api.Fault) (api.DecidedNotification, error) {
	wait, faults := waitUntil(&api.RescheduleRequest{In: req.In, At: req.At}, time.Now())
	return s.decideCopies(ctx, site, id, append(wrong, faults...), rescheduleCopies(req.Channel, wait))
}

// decideCopies applies a decision to each copy. The state in the store at that moment counts: a copy whose
// state does not allow the decision is left as it is.
func (s Notifications) decideCopies(ctx context.Context, site, id string, wrong []api.Fault, d copyDecision) (out api.DecidedNotification, err error) {
	if len(wrong) > 0 {
		return out, api.Faulty(wrong...)
	}
	copies, p := s.copies(ctx, site, id)
	if p != nil {
		return out, p
	}
	if d.channel != "" && !slices.ContainsFunc(copies, func(r notify.Record) bool { return r.Channel == d.channel }) {
		return out, api.Faulty(api.Fault{Field: "channel", Value: api.Clip(d.channel), Problem: "has no copy of this notification"})
	}
	n := &copies[0].Notification
	out = api.DecidedNotification{ID: string(n.ID), Site: n.Origin.Site}
	var changed, found []string
	for i := range copies {
		c, gone, err := s.decideCopy(ctx, &copies[i], &d)
		if err != nil {
			return out, s.halfway(ctx, copies[i].Message, changed, done(d.verb), err)
		}
		if c.Changed {
			changed = append(changed, c.Channel)
		}
		if d.about(&copies[i]) {
			found = append(found, standsAs(&c, gone))
		}
		out.Copies = append(out.Copies, c)
	}
	if len(changed) == 0 {
		is, only := strings.Join(found, ", "), fmt.Sprintf("only what is %s can be %s", brief.AnyOf(StatusesFor(d.verb)), done(d.verb))
		if len(found) == 0 { // it has changed since a filter found it
			is, only = string(notify.StandingOf(copies).Status), "it was to be done to what is "+brief.AnyOf(d.only)
		}
		return out, api.WrongState.Problem(fmt.Sprintf("notification %s is %s; %s", out.ID, is, only), api.Fault{Field: "status", Value: is, Problem: only})
	}
	return out, nil
}

// about reports whether the decision concerns this copy.
func (d *copyDecision) about(c *notify.Record) bool {
	return (d.channel == "" || d.channel == c.Channel) && (len(d.only) == 0 || slices.Contains(d.only, c.Status))
}

// standsAs says in words why nothing was changed.
func standsAs(c *api.DecidedCopy, gone bool) string {
	switch {
	case gone:
		return c.Status + ", and its message has been purged"
	case c.Discarding:
		return c.Status + " and discarded with the attempt under way"
	}
	return c.Status
}

// decideCopy applies the decision to one copy, and returns how the copy stands then. gone says that its
// message is purged.
func (s Notifications) decideCopy(ctx context.Context, of *notify.Record, d *copyDecision) (c api.DecidedCopy, gone bool, err error) {
	c = api.DecidedCopy{Channel: of.Channel, Message: string(of.Message), Status: string(of.Status), Discarding: of.Discarding, NextAttempt: instant(of.NextAttempt)}
	if of.Status == notify.Delivered || !d.about(of) {
		return c, false, nil
	}
	r, err := d.do(ctx, s.Outbox, of.Message)
	c.Changed = err == nil
	if errors.Is(err, holdfast.ErrState) {
		r, err = s.Outbox.Get(ctx, of.Message) // only to name the state
	}
	if errors.Is(err, holdfast.ErrNotFound) {
		return c, true, nil
	}
	c.Status, c.Discarding, c.NextAttempt = statusOfRecord(&r), r.Discarding, instant(r.Due)
	return c, false, err
}

// StatusesFor returns the statuses of copies from which a verb starts.
func StatusesFor(v holdfast.Verb) (list []notify.Status) {
	for _, state := range v.States() {
		for tries := range 2 {
			if status := notify.StatusOf(state, tries); !slices.Contains(list, status) {
				list = append(list, status)
			}
		}
	}
	return list
}

// halfway says what was done before an error. The request can safely be repeated.
func (s Notifications) halfway(ctx context.Context, id holdfast.ID, changed []string, done string, err error) *api.Problem {
	p := s.missing(ctx, "change the notification", id, err)
	if len(changed) > 0 {
		p.Detail = fmt.Sprintf("the copies over %s were %s; then: %s", strings.Join(changed, ", "), done, p.Detail)
	}
	return p
}
