package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"github.com/holdfast-mq/holdfast"
)

type idInput struct {
	ID string `path:"id" doc:"The message id; a UUID in any form."`
}

type listInput struct {
	State       []string `query:"state,explode" doc:"Only these states: repeat the parameter, or separate by commas."`
	Destination string   `query:"destination" doc:"Only this destination."`
	Category    string   `query:"category" maxLength:"128" doc:"Only destinations of this category, one after the other; excludes destination."`
	After       string   `query:"after" maxLength:"512" doc:"The next of the page before."`
	Limit       int      `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"How many at most."`
}

type pageOutput struct{ Body MessagePage }

type messageOutput struct{ Body Message }

type detailOutput struct{ Body MessageDetail }

// RetryRequest is what POST /v1/messages/{id}/retry takes.
type RetryRequest struct {
	TTL   string `json:"ttl,omitempty" doc:"A new TTL, as a duration from now. Absent: as long as the message had at first." example:"24h"`
	Force bool   `json:"force,omitempty" doc:"Send it even where the receiver may have forgotten the id, and might do it a second time."`
}

type retryInput struct {
	ID      string `path:"id" doc:"The message id; a UUID in any form."`
	Content body
}

// decisionProblems are what a person's decision about a message can meet.
func decisionProblems() map[kind]string {
	return map[kind]string{
		kindNotFound: "No such message is kept.",
		kindState:    "It is neither parked nor expired; the problem names its state.",
		kindDiskFull: "The disk is full; nothing was changed.",
	}
}

func (b *builder) messages() {
	b.send()
	handle(b, route{
		method: http.MethodGet, path: "/v1/messages", id: "list-messages", tag: "messages", role: Read,
		summary: "List messages", description: "Newest first, without payloads and histories; with category, the newest of each destination first.",
	}, b.list)
	handle(b, route{
		method: http.MethodGet, path: "/v1/messages/{id}", id: "get-message", tag: "messages", role: Read,
		summary: "Show a message", description: "With its payload, its history, and in words why it has not been sent yet.",
		problems: map[kind]string{kindNotFound: "No such message is kept."},
	}, b.show)
	handle(b, route{
		method: http.MethodPost, path: "/v1/messages/{id}/retry", id: "retry-message", tag: "messages", role: Operate,
		summary:     "Retry a message",
		description: "Starts a new cycle of a parked or expired message: failures count from zero, it is due at once, and its TTL begins anew.",
		problems:    decisionProblems(),
		request:     reflect.TypeFor[RetryRequest](), requestSample: json.RawMessage(`{"ttl":"24h"}`),
	}, b.retry)
	handle(b, route{
		method: http.MethodPost, path: "/v1/messages/{id}/discard", id: "discard-message", tag: "messages", role: Operate,
		summary: "Discard a message", description: "Gives a parked or expired message up. Its row is kept for its retention.",
		problems: decisionProblems(),
	}, b.discard)
}

func (s *Server) list(ctx context.Context, in *listInput) (*pageOutput, error) {
	states, faults := statesOf(in.State)
	if len(faults) > 0 {
		return nil, invalid(faults...)
	}
	q := holdfast.Query{States: states, Destination: in.Destination, Limit: in.Limit, After: in.After}
	if in.Category == "" {
		return s.page(ctx, q)
	}
	if in.Destination != "" {
		return nil, invalid(Fault{"category", clip(in.Category), "excludes destination, which has one category; leave one of them out"})
	}
	names, faults := s.inCategory(in.Category)
	if len(faults) > 0 {
		return nil, invalid(faults...)
	}
	return s.pageOfCategory(ctx, q, names)
}

// page lists messages of this node.
func (s *Server) page(ctx context.Context, q holdfast.Query) (*pageOutput, error) {
	page, err := s.Outbox.List(ctx, q)
	if err != nil {
		return nil, s.refuse(ctx, "list messages", err)
	}
	return &pageOutput{s.pageOf(page)}, nil
}

// statesOf reads state=parked,expired and state=parked&state=expired.
func statesOf(params []string) (states []holdfast.State, faults []Fault) {
	for _, param := range params {
		for name := range strings.SplitSeq(param, ",") {
			state, err := holdfast.ParseState(strings.TrimSpace(name))
			if err != nil {
				faults = append(faults, faultsOf(err)...)
				continue
			}
			states = append(states, state)
		}
	}
	return states, faults
}

func (s *Server) show(ctx context.Context, in *idInput) (*detailOutput, error) {
	id, p := parseID(in.ID)
	if p != nil {
		return nil, p
	}
	r, err := s.Outbox.Get(ctx, id)
	if err != nil {
		return nil, s.missing(ctx, "read the message", id, err)
	}
	return &detailOutput{s.detailOf(r)}, nil
}

func (s *Server) retry(ctx context.Context, in *retryInput) (*messageOutput, error) {
	r, err := s.retryAt(ctx, s.Outbox, in.ID, in.Content)
	if err != nil {
		return nil, err
	}
	return &messageOutput{s.messageOf(r)}, nil
}

func (s *Server) retryAt(ctx context.Context, of holdfast.Outbox, id string, content body) (r holdfast.Record, err error) {
	var req RetryRequest
	faults, p := content.decode(&req)
	if p != nil {
		return r, p
	}
	requeue := holdfast.Requeue{Force: req.Force, Actor: actor(ctx)}
	if req.TTL == "none" {
		faults = append(faults, Fault{"ttl", req.TTL, "cannot be given to a message that had one; write a long time, such as 3650d"})
	} else if req.TTL != "" {
		ttl, fault := ttlOf(req.TTL)
		requeue.TTL, faults = ttl, append(faults, fault...)
	}
	if len(faults) > 0 {
		return r, invalid(faults...)
	}
	return s.decide(ctx, of, id, "retried", func(id holdfast.ID) (holdfast.Record, error) {
		return of.Requeue(ctx, id, requeue)
	})
}

func (s *Server) discard(ctx context.Context, in *idInput) (*messageOutput, error) {
	r, err := s.discardAt(ctx, s.Outbox, in.ID)
	if err != nil {
		return nil, err
	}
	return &messageOutput{s.messageOf(r)}, nil
}

func (s *Server) discardAt(ctx context.Context, of holdfast.Outbox, id string) (holdfast.Record, error) {
	return s.decide(ctx, of, id, "discarded", func(id holdfast.ID) (holdfast.Record, error) {
		return of.Discard(ctx, id, actor(ctx))
	})
}

// decide runs an operator's decision and explains why it was refused.
func (s *Server) decide(ctx context.Context, of holdfast.Outbox, text, done string, change func(holdfast.ID) (holdfast.Record, error)) (r holdfast.Record, err error) {
	id, p := parseID(text)
	if p != nil {
		return r, p
	}
	r, err = change(id)
	if errors.Is(err, holdfast.ErrState) {
		// Only to name the state: the decision itself has been made by the store.
		if r, err = of.Get(ctx, id); err != nil {
			return r, s.missing(ctx, "read the message", id, err)
		}
		return r, kindState.problem(fmt.Sprintf("message %s is %s; only a parked or expired message can be %s", id, r.State, done),
			Fault{Field: "state", Value: r.State.String(), Problem: "only a parked or expired message can be " + done})
	}
	if err != nil {
		return r, s.missing(ctx, "change the message", id, err)
	}
	return r, nil
}
