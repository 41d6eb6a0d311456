package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"slices"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
)

type sendInput struct {
	Key     string `header:"Idempotency-Key" doc:"Gives the id, where the body does not."`
	Content body
}

type sendOutput struct {
	Status   int
	Location string `header:"Location" doc:"Where the message can be watched."`
	Body     api.Accepted
}

const (
	envelopeRoom = 128 << 10 // bytes for all fields but the payload, escaped
	mostRetries  = 1_000_000
)

func (b *builder) send() {
	handle(b, route{
		method: http.MethodPost, path: "/v1/messages", id: "send-message", tag: "messages", role: api.Operate,
		summary: "Send a message",
		description: "The answer comes after the message is on disk. The same id with the same content (kind, destination, endpoint, " +
			"payload; never headers) is the same message: sending it again is safe and changes nothing. With wait the answer comes " +
			"after the first attempt: what the destination refuses for good is a problem, everything else is tried again.",
		status: http.StatusAccepted,
		problems: map[api.Sort]string{
			api.Conflict:   "The id belongs to a message with other content.",
			api.TooLarge:   fmt.Sprintf("The payload is larger than this node takes: %d bytes.", b.maxPayload()),
			api.DiskFull:   "The disk is full; nothing was accepted.",
			api.Refused:    "The request waited, or one of the same id did before, and the destination has refused the message for good.",
			api.WrongState: "The id is that of a message that was discarded or has expired: it is not sent again unless a person retries it.",
		},
		request: reflect.TypeFor[api.NewMessage](), bodyRequired: true, bodyLimit: b.maxPayload() + envelopeRoom,
		requestSample: json.RawMessage(`{"destination":"inventory","endpoint":"OrderApproved","payload":{"order":42}}`),
	}, b.Server.send)
	responses := b.operation(http.MethodPost, "/v1/messages").Responses
	repeat := *responses["202"]
	repeat.Description = "Delivered, where the request waited; or the id was known with the same content, and this request changed nothing."
	responses["200"] = &repeat
	responses["202"].Description = "The message is new, and on disk."
}

func (s *Server) send(ctx context.Context, in *sendInput) (*sendOutput, error) {
	var req api.NewMessage
	faults, p := in.Content.decode(&req)
	if p != nil {
		return nil, p
	}
	if size := int64(len(req.Payload)); size > s.maxPayload() {
		return nil, api.TooLarge.Problem(
			fmt.Sprintf("the payload has %d bytes; this node takes at most %d: send large content by reference, or raise the node's limit", size, s.maxPayload()),
			api.Fault{Field: "payload", Value: fmt.Sprintf("%d bytes", size), Problem: fmt.Sprintf("at most %d bytes are taken", s.maxPayload())})
	}
	forwarded := s.toCentral(&req)
	if req.Category == string(holdfast.CategoryNotification) && !forwarded && !s.knows(req.Destination) {
		return s.notifyByMessage(ctx, &req, in.Key, faults)
	}
	m, more := s.message(req, in.Key)
	wait, wrong := s.waitOf(&req)
	if forwarded {
		wrong = append(wrong, s.asNotification(&req, &m)...)
	}
	ms := []holdfast.Message{m}
	faults = slices.Concat(faults, more, wrong, api.FaultsOf(holdfast.Normalize(s.source(), ms)))
	if len(faults) > 0 {
		p := api.Faulty(withoutRepeats(faults)...)
		if req.Destination != "" && !s.knows(req.Destination) {
			p.Cause = causeDestination
		}
		return nil, p
	}
	sub, err := s.submitter().Submit(ctx, ms[0], wait)
	if refused, ok := errors.AsType[*holdfast.RefusedError](err); ok {
		return nil, refusedBy(refused)
	}
	if errors.Is(err, holdfast.ErrConflict) {
		return nil, conflict(ms[0].ID)
	}
	if ended, ok := errors.AsType[*holdfast.EndedError](err); ok {
		return nil, endedBefore(ended)
	}
	if err != nil {
		return nil, inDoubt(s.refuse(ctx, "store the message", err), err, ms[0].ID)
	}
	return s.accepted(ctx, ms[0], &sub), nil
}

func (s *Server) submitter() *holdfast.Submitter {
	return &holdfast.Submitter{Enqueuer: s.Enqueuer, Outbox: s.Outbox, Waiters: s.Waiters, Lanes: s.Lanes}
}

func conflict(id holdfast.ID) *api.Problem {
	return api.Conflict.Problem(
		fmt.Sprintf("message %s is known with other content; take a new id for a new message, or send the same kind, destination, endpoint and payload", id),
		api.Fault{Field: "id", Value: string(id), Problem: "belongs to a message with other content"})
}

func (s *Server) accepted(ctx context.Context, m holdfast.Message, sub *holdfast.Submission) *sendOutput {
	out := &sendOutput{
		Status:   http.StatusAccepted,
		Location: "/v1/messages/" + api.Segment(string(sub.ID)),
		Body: api.Accepted{
			ID: string(sub.ID), State: sub.State.String(), Accepted: true, Buffered: !sub.State.Final(),
			Durability: s.durability(), Duplicate: sub.Duplicate,
		},
	}
	if sub.Attempt != nil {
		firstOutcome(&out.Body, sub.Attempt)
	}
	if sub.Duplicate || sub.Attempt != nil && sub.State == holdfast.Delivered {
		out.Status = http.StatusOK
	}
	if log := s.log(); !sub.Duplicate && log.Enabled(ctx, slog.LevelDebug) { // the store says that it is enqueued
		log.LogAttrs(ctx, slog.LevelDebug, "message accepted", slog.String("message_id", string(sub.ID)),
			slog.String("destination", m.Destination), slog.String("endpoint", m.Endpoint), slog.String("actor", actor(ctx)))
	}
	return out
}

func (s *Server) durability() string { return cmp.Or(s.Durability, "local") }

// withoutRepeats keeps the first fault of each field: what is said next about
// a field that could not be read follows from it.
func withoutRepeats(faults []api.Fault) []api.Fault {
	seen := map[string]bool{}
	return slices.DeleteFunc(faults, func(f api.Fault) bool {
		again := seen[f.Field] && f.Problem != "" // else it is one of those that only count
		seen[f.Field] = true
		return again
	})
}
