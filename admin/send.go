package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// Sent is the result of a request to send.
type Sent struct {
	api.Accepted
	Notification bool // it was a notification, and is on its way to its channels
}

// Send takes a message. key gives the id if the request does not.
func (m Messages) Send(ctx context.Context, req *api.NewMessage, key string, wrong ...api.Fault) (sent Sent, err error) {
	if m.there != nil {
		return sent, api.Unsupported.Problem("messages of a site are sent at the site itself; from here you can only read them and decide about them")
	}
	if size := int64(len(req.Payload)); size > m.LargestPayload() {
		return sent, api.TooLarge.Problem(
			fmt.Sprintf("the payload has %d bytes; this node takes at most %d: send large content by reference, or raise the node's limit", size, m.LargestPayload()),
			api.Fault{Field: "payload", Value: fmt.Sprintf("%d bytes", size), Problem: fmt.Sprintf("at most %d bytes are taken", m.LargestPayload())})
	}
	forwarded := m.toCentral(req)
	if !within(ctx, m.here(req.Destination)) {
		return sent, outside("destination", req.Destination)
	}
	if req.Category == string(holdfast.CategoryNotification) && !forwarded && !m.knows(req.Destination) {
		return m.notifyByMessage(ctx, req, key, wrong)
	}
	msg, more := m.message(ctx, req, key)
	wait, faults := m.waitOf(req)
	if forwarded {
		faults = append(faults, m.asNotification(ctx, req, &msg)...)
	}
	ms := []holdfast.Message{msg}
	faults = slices.Concat(wrong, more, faults, api.FaultsOf(holdfast.Normalize(m.From(), ms)))
	if len(faults) > 0 {
		p := api.Faulty(withoutRepeats(faults)...)
		if req.Destination != "" && !m.knows(req.Destination) {
			p.Cause = causeDestination
		}
		return sent, p
	}
	sub, err := m.submitter().Submit(ctx, ms[0], wait)
	if refused, ok := errors.AsType[*holdfast.RefusedError](err); ok {
		return sent, refusedBy(refused)
	}
	if errors.Is(err, holdfast.ErrConflict) {
		return sent, conflict(ms[0].ID)
	}
	if ended, ok := errors.AsType[*holdfast.EndedError](err); ok {
		return sent, endedBefore(ended)
	}
	if err != nil {
		return sent, inDoubt(m.refuse(ctx, "store the message", err), err, ms[0].ID)
	}
	return Sent{Accepted: m.accepted(ctx, ms[0], &sub)}, nil
}

func (s *Service) submitter() *holdfast.Submitter {
	return &holdfast.Submitter{Enqueuer: s.Enqueuer, Outbox: s.Outbox, Waiters: s.Waiters, Lane: s.laneNow}
}

func conflict(id holdfast.ID) *api.Problem {
	return api.Conflict.Problem(
		fmt.Sprintf("message %s is known with other content; take a new id for a new message, or send the same kind, destination, endpoint and payload", id),
		api.Fault{Field: "id", Value: string(id), Problem: "belongs to a message with other content"})
}

func (m Messages) accepted(ctx context.Context, msg holdfast.Message, sub *holdfast.Submission) api.Accepted {
	out := api.Accepted{
		ID: string(sub.ID), State: sub.State.String(), Accepted: true, Buffered: !sub.State.Final(),
		Durability: m.durability(), Duplicate: sub.Duplicate,
	}
	if sub.Attempt != nil {
		firstOutcome(&out, sub.Attempt)
	}
	if log := m.Log(); !sub.Duplicate && log.Enabled(ctx, slog.LevelDebug) { // the store logs that it is enqueued
		log.LogAttrs(ctx, slog.LevelDebug, "message accepted", slog.String("message_id", string(sub.ID)),
			slog.String("destination", msg.Destination), slog.String("endpoint", msg.Endpoint), slog.String("actor", Actor(ctx)))
	}
	return out
}

func (s *Service) durability() string { return cmp.Or(s.Durability, "local") }

// withoutRepeats keeps the first fault of each field: if a field could not be read, later faults of it follow
// from that.
func withoutRepeats(faults []api.Fault) []api.Fault {
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(faults), func(f api.Fault) bool {
		again := seen[f.Field] && f.Problem != "" // else the fault only counts others
		seen[f.Field] = true
		return again
	})
}
