package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/holdfast-mq/holdfast"
)

// NewMessage is what POST /v1/messages takes.
type NewMessage struct {
	ID            string            `json:"id,omitempty" maxLength:"128" doc:"The message id, 1 to 128 printable ASCII characters; a UUID in any form is one value. Absent: the node mints one. Send the same id again when you do not know whether a request arrived."`
	Source        string            `json:"source,omitempty" maxLength:"128" doc:"Who sends it. Absent: the node."`
	Category      string            `json:"category,omitempty" maxLength:"128" doc:"What kind of work it is: external-system, cached-db-write, notification, or one that the node has besides. It must be the destination's. Absent: not checked." example:"external-system"`
	Destination   string            `json:"destination,omitempty" maxLength:"128" doc:"Where it goes: one of GET /v1/destinations. A notification needs none." example:"inventory"`
	Endpoint      string            `json:"endpoint,omitempty" maxLength:"128" doc:"What is called there. A notification needs none." example:"OrderApproved"`
	Kind          string            `json:"kind,omitempty" enum:"Signal,Command,PushCall,Response" doc:"Absent: Signal."`
	CorrelationID string            `json:"correlationId,omitempty" maxLength:"128" doc:"Ties the messages of one conversation together."`
	OrderingKey   string            `json:"orderingKey,omitempty" maxLength:"128" doc:"At most one message of a key is in flight, in the order of acceptance. Absent: no order."`
	Headers       map[string]string `json:"headers,omitempty" doc:"Travel along; not part of the identity. At most 64, 8 KiB together. Names that begin with hf- are the node's own."`
	TTL           string            `json:"ttl,omitempty" doc:"How long it is worth delivering: a duration such as 90s, 24h, 7d or 2w, or none. Absent: the destination's." example:"24h"`
	Delay         string            `json:"delay,omitempty" doc:"The earliest first attempt, as a duration from now. Absent: at once." example:"5m"`
	MaxRetries    *int              `json:"maxRetries,omitempty" minimum:"0" maximum:"1000000" doc:"Retries after the first attempt; 0: without limit, until the TTL ends. Absent: the destination's."`
	RetryInterval string            `json:"retryInterval,omitempty" doc:"A fixed wait between two attempts, as a duration. Absent: the destination's retries." example:"30s"`
	Wait          string            `json:"wait,omitempty" doc:"Wait so long for the first attempt's outcome, at most 1m; 0s: answer as soon as it is on disk. Absent: 10s for a destination that is a call or a database, else 0s." example:"10s"`

	AttemptImmediately *bool `json:"attemptImmediately,omitempty" doc:"false: answer as soon as it is on disk, and do not wait for an attempt. Absent: true."`

	OriginInstance    string `json:"originInstance,omitempty" maxLength:"256" doc:"Which instance of a program it comes from; kept with it, also when that instance is gone."`
	SourceScript      string `json:"sourceScript,omitempty" maxLength:"256" doc:"Which script or program part it comes from."`
	ExecutionID       string `json:"executionId,omitempty" maxLength:"256" doc:"Which run of the script."`
	ParentExecutionID string `json:"parentExecutionId,omitempty" maxLength:"256" doc:"Which run started that run."`

	Payload json.RawMessage `json:"payload,omitempty" doc:"Any JSON. Its bytes are kept, signed and sent as they are. Absent: null."`
}

// Accepted is the answer to a message that was taken.
type Accepted struct {
	ID         string `json:"id" doc:"The message id, in its canonical form."`
	State      string `json:"state" enum:"pending,claimed,delivered,parked,expired,discarded" doc:"Where the message stands now."`
	Accepted   bool   `json:"accepted" doc:"Always true: a refusal is a problem document."`
	Buffered   bool   `json:"buffered" doc:"It waits in the outbox or is being tried."`
	Durability string `json:"durability" doc:"How far it is safe: local is on this node's disk." example:"local"`
	Duplicate  bool   `json:"duplicate" doc:"The id was known, with the same content: this request changed nothing."`

	Outcome        string          `json:"outcome,omitempty" enum:"delivered,transient,lane_fault,unreachable" doc:"Of the first attempt, where the request waited for it."`
	LastError      string          `json:"lastError,omitempty" doc:"What the first attempt said, where it failed."`
	Note           string          `json:"note,omitempty" doc:"Why there is no answer of the destination, where it was cut off or too long: it has done its work."`
	ResponseBase64 string          `json:"responseBase64,omitempty" doc:"The destination's answer, where it is not JSON."`
	Response       json.RawMessage `json:"response,omitempty" doc:"The destination's answer, byte by byte. It is not kept: a repeat does not get it."`
}

// appendJSON keeps the answer's bytes.
func (a Accepted) appendJSON() ([]byte, error) {
	raw := a.Response
	a.Response = nil
	return spliced(a, "response", raw)
}

type sendInput struct {
	Key     string `header:"Idempotency-Key" doc:"Gives the id, where the body does not."`
	Content body
}

type sendOutput struct {
	Status   int
	Location string `header:"Location" doc:"Where the message can be watched."`
	Body     Accepted
}

const (
	envelopeRoom = 128 << 10 // bytes for all fields but the payload, escaped
	mostRetries  = 1_000_000
)

func (b *builder) send() {
	handle(b, route{
		method: http.MethodPost, path: "/v1/messages", id: "send-message", tag: "messages", role: Operate,
		summary: "Send a message",
		description: "The answer comes after the message is on disk. The same id with the same content (kind, destination, endpoint, " +
			"payload; never headers) is the same message: sending it again is safe and changes nothing. With wait the answer comes " +
			"after the first attempt: what the destination refuses for good is a problem, everything else is tried again.",
		status: http.StatusAccepted,
		problems: map[kind]string{
			kindConflict: "The id belongs to a message with other content.",
			kindTooLarge: fmt.Sprintf("The payload is larger than this node takes: %d bytes.", b.maxPayload()),
			kindDiskFull: "The disk is full; nothing was accepted.",
			kindRefused:  "The request waited, or one of the same id did before, and the destination has refused the message for good.",
			kindState:    "The id is that of a message that was discarded or has expired: it is not sent again unless a person retries it.",
		},
		request: reflect.TypeFor[NewMessage](), bodyRequired: true, bodyLimit: b.maxPayload() + envelopeRoom,
		requestSample: json.RawMessage(`{"destination":"inventory","endpoint":"OrderApproved","payload":{"order":42}}`),
	}, b.Server.send)
	responses := b.operation(http.MethodPost, "/v1/messages").Responses
	repeat := *responses["202"]
	repeat.Description = "Delivered, where the request waited; or the id was known with the same content, and this request changed nothing."
	responses["200"] = &repeat
	responses["202"].Description = "The message is new, and on disk."
}

func (s *Server) send(ctx context.Context, in *sendInput) (*sendOutput, error) {
	var req NewMessage
	faults, p := in.Content.decode(&req)
	if p != nil {
		return nil, p
	}
	if size := int64(len(req.Payload)); size > s.maxPayload() {
		return nil, kindTooLarge.problem(
			fmt.Sprintf("the payload has %d bytes; this node takes at most %d: send large content by reference, or raise the node's limit", size, s.maxPayload()),
			Fault{Field: "payload", Value: fmt.Sprintf("%d bytes", size), Problem: fmt.Sprintf("at most %d bytes are taken", s.maxPayload())})
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
	faults = slices.Concat(faults, more, wrong, faultsOf(holdfast.Normalize(s.source(), ms)))
	if len(faults) > 0 {
		p := invalid(withoutRepeats(faults)...)
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
		return nil, s.refuse(ctx, "store the message", err).inDoubt(err, ms[0].ID)
	}
	return s.accepted(ctx, ms[0], &sub), nil
}

func (s *Server) submitter() *holdfast.Submitter {
	return &holdfast.Submitter{Enqueuer: s.Enqueuer, Outbox: s.Outbox, Waiters: s.Waiters, Lane: s.laneNow}
}

func conflict(id holdfast.ID) *Problem {
	return kindConflict.problem(
		fmt.Sprintf("message %s is known with other content; take a new id for a new message, or send the same kind, destination, endpoint and payload", id),
		Fault{Field: "id", Value: string(id), Problem: "belongs to a message with other content"})
}

func (s *Server) accepted(ctx context.Context, m holdfast.Message, sub *holdfast.Submission) *sendOutput {
	out := &sendOutput{
		Status:   http.StatusAccepted,
		Location: "/v1/messages/" + segment(string(sub.ID)),
		Body: Accepted{
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
func withoutRepeats(faults []Fault) []Fault {
	seen := map[string]bool{}
	return slices.DeleteFunc(faults, func(f Fault) bool {
		again := seen[f.Field] && f.Problem != "" // else it is one of those that only count
		seen[f.Field] = true
		return again
	})
}

// segment escapes an id for a path; a browser or proxy would resolve dots.
func segment(id string) string {
	if id == "." || id == ".." {
		return strings.ReplaceAll(id, ".", "%2E")
	}
	return url.PathEscape(id)
}
