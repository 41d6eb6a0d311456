package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/internal/brief"
)

// Retry starts a new cycle of a parked, expired or discarded message.
func (m Messages) Retry(ctx context.Context, id string, req *api.RetryRequest, wrong ...api.Fault) (out api.Message, err error) {
	requeue := holdfast.Requeue{Force: req.Force, Actor: Actor(ctx)}
	if req.TTL == "none" {
		wrong = append(wrong, api.Fault{Field: "ttl", Value: req.TTL, Problem: "cannot be given to a message that had one; write a long time, such as 3650d"})
	} else if req.TTL != "" {
		ttl, fault := ttlOf(req.TTL)
		requeue.TTL, wrong = ttl, append(wrong, fault...)
	}
	if len(wrong) > 0 {
		return out, api.Faulty(wrong...)
	}
	return m.decide(ctx, id, holdfast.VerbRequeue, func(of holdfast.Outbox, id holdfast.ID) (holdfast.Record, error) {
		return of.Requeue(ctx, id, requeue)
	})
}

// Discard gives up a message.
func (m Messages) Discard(ctx context.Context, id string) (api.Message, error) {
	return m.decide(ctx, id, holdfast.VerbDiscard, func(of holdfast.Outbox, id holdfast.ID) (holdfast.Record, error) {
		return of.Discard(ctx, id, Actor(ctx))
	})
}

// Run makes a message due at once.
func (m Messages) Run(ctx context.Context, id string) (api.Message, error) {
	return m.rescheduleIn(ctx, id, 0)
}

// Reschedule sets when a message is tried next.
func (m Messages) Reschedule(ctx context.Context, id string, req *api.RescheduleRequest, wrong ...api.Fault) (out api.Message, err error) {
	in, faults := waitUntil(req, time.Now())
	if faults = append(wrong, faults...); len(faults) > 0 {
		return out, api.Faulty(faults...)
	}
	return m.rescheduleIn(ctx, id, in)
}

func (m Messages) rescheduleIn(ctx context.Context, id string, in time.Duration) (api.Message, error) {
	return m.decide(ctx, id, holdfast.VerbReschedule, func(of holdfast.Outbox, id holdfast.ID) (holdfast.Record, error) {
		return of.Reschedule(ctx, id, holdfast.Reschedule{In: in, Actor: Actor(ctx)})
	})
}

// waitUntil returns how long from now the requested time is.
func waitUntil(req *api.RescheduleRequest, now time.Time) (time.Duration, []api.Fault) {
	switch {
	case req.In == "" && req.At == "":
		return 0, []api.Fault{{Field: "in", Problem: "is missing; say in, such as 2h, or at, such as 2026-11-30T06:00:00Z"}}
	case req.In != "" && req.At != "":
		return 0, []api.Fault{{Field: "at", Value: api.Clip(req.At), Problem: "excludes in; leave one of them out"}}
	case req.In != "":
		in, problem := parseDuration(req.In)
		if problem != "" {
			return 0, []api.Fault{{Field: "in", Value: api.Clip(req.In), Problem: problem}}
		}
		return in, nil
	}
	at, err := time.Parse(time.RFC3339, req.At)
	if err != nil {
		return 0, []api.Fault{{Field: "at", Value: api.Clip(req.At), Problem: "is not an instant; write one such as 2026-11-30T06:00:00Z"}}
	}
	if at.Before(now) {
		return 0, []api.Fault{{Field: "at", Value: api.Clip(req.At), Problem: "is in the past; write a later one, or run the message now"}}
	}
	return at.Sub(now), nil
}

// done returns the past participle of a verb, for texts.
func done(v holdfast.Verb) string {
	switch v {
	case holdfast.VerbRequeue:
		return "retried"
	case holdfast.VerbDiscard:
		return "discarded"
	case holdfast.VerbReschedule:
	}
	return "rescheduled"
}

// decide runs a person's decision. If it is refused, decide explains why.
func (m Messages) decide(ctx context.Context, text string, verb holdfast.Verb, change func(of holdfast.Outbox, id holdfast.ID) (holdfast.Record, error)) (out api.Message, err error) {
	id, p := parseID(text)
	if p != nil {
		return out, p
	}
	again := verb == holdfast.VerbRequeue && m.Hub != nil
	if may := Granted(ctx); !may.Whole() || again { // a message keeps its destination, so that nothing comes between
		r, err := m.get(ctx, id)
		former := false
		if err == nil && again {
			former, err = m.ofFormer(ctx, &r, false)
		}
		if err != nil {
			return out, m.missing(ctx, "read the message", id, err)
		}
		if former {
			return out, api.WrongState.Problem(fmt.Sprintf("message %s was for a deleted subscription, and another one has its id: it would go there; publish the event again", id),
				api.Fault{Field: "state", Value: r.State.String(), Problem: "belongs to a deleted subscription"})
		}
	}
	r, err := change(m.outbox(), id)
	if errors.Is(err, holdfast.ErrState) {
		// Read only to name the state: the store has already refused the decision.
		if r, err = m.outbox().Get(ctx, id); err != nil {
			return out, m.missing(ctx, "read the message", id, err)
		}
		only := fmt.Sprintf("only a message that is %s can be %s", brief.AnyOf(verb.States()), done(verb))
		if r.Discarding {
			only = "it is discarded already, and ends with the attempt that is under way"
		}
		return out, api.WrongState.Problem(fmt.Sprintf("message %s is %s; %s", id, r.State, only), api.Fault{Field: "state", Value: r.State.String(), Problem: only})
	}
	if err != nil {
		return out, m.missing(ctx, "change the message", id, err)
	}
	return m.show(&r), nil
}
