package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
)

type inboxInput struct {
	Endpoint string `query:"endpoint" doc:"Only this endpoint."`
	After    int64  `query:"after" minimum:"0" doc:"The next of the page before."`
	Limit    int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"How many at most."`
}

type inboxOutput struct{ Body api.KeptPage }

type doneInput struct {
	ID      string `path:"id" doc:"The message id; a UUID in any form."`
	Content body
}

type doneOutput struct{ Body api.Done }

func (b *builder) inbox() {
	handle(b, route{
		method: http.MethodGet, path: "/v1/inbox", id: "list-inbox", tag: "inbox", role: api.Read,
		summary: "List received messages", description: "Messages of endpoints that keep them, until they are marked done.",
	}, b.kept)
	handle(b, route{
		method: http.MethodPost, path: "/v1/inbox/{id}/done", id: "finish-inbox", tag: "inbox", role: api.Operate,
		summary: "Mark a received message done",
		description: "It leaves the list; its id is remembered, so that a repeat is answered with the response. " +
			"Marking it again with the same response is no error.",
		problems: map[api.Sort]string{
			api.NotFound: "No such message is kept.",
			api.Conflict: "It is done already with another response, or several sources sent this id: give the source.",
			api.DiskFull: "The disk is full; nothing was changed.",
		},
		request: reflect.TypeFor[api.DoneRequest](), bodyLimit: b.maxPayload() + smallBody,
		requestSample: json.RawMessage(`{"source":"engine","response":{"reserved":true}}`),
	}, b.done)
}

func (s *Server) kept(ctx context.Context, in *inboxInput) (*inboxOutput, error) {
	page, err := s.Inbox.Kept(ctx, holdfast.KeptQuery{Endpoint: in.Endpoint, Limit: in.Limit, After: in.After})
	if err != nil {
		return nil, s.refuse(ctx, "list the inbox", err)
	}
	out := api.KeptPage{Messages: make([]api.KeptMessage, len(page.Messages)), Next: page.Next}
	for i, k := range page.Messages {
		m := k.Message
		kept := api.KeptMessage{
			ID: string(m.ID), Source: m.Source, Endpoint: m.Endpoint, Kind: string(m.Kind),
			CorrelationID: m.CorrelationID, Headers: m.Headers, Received: k.Received.UTC(), Damaged: k.Damaged,
		}
		kept.Payload, kept.PayloadBase64 = payloadOf(m.Payload)
		out.Messages[i] = kept
	}
	return &inboxOutput{out}, nil
}

func (s *Server) done(ctx context.Context, in *doneInput) (*doneOutput, error) {
	id, p := parseID(in.ID)
	if p != nil {
		return nil, p
	}
	var req api.DoneRequest
	faults, p := in.Content.decode(&req)
	if p != nil {
		return nil, p
	}
	if len(faults) > 0 {
		return nil, api.Faulty(faults...)
	}
	if size := int64(len(req.Response)); size > s.maxPayload() {
		return nil, api.TooLarge.Problem(fmt.Sprintf("the response has %d bytes; this node takes at most %d", size, s.maxPayload()),
			api.Fault{Field: "response", Value: fmt.Sprintf("%d bytes", size), Problem: fmt.Sprintf("at most %d bytes are taken", s.maxPayload())})
	}
	source := req.Source
	if source == "" {
		if source, p = s.sourceOf(ctx, id); p != nil {
			return nil, p
		}
	}
	err := s.Inbox.Done(ctx, source, id, req.Response)
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		return nil, notKept(id, source)
	case errors.Is(err, holdfast.ErrState):
		return nil, api.Conflict.Problem(fmt.Sprintf("message %s of %s is done already with another response; the first one stands", id, source),
			api.Fault{Field: "response", Problem: "is not the response that the message was marked done with"})
	case err != nil:
		return nil, s.refuse(ctx, "mark the message done", err)
	}
	return &doneOutput{api.Done{ID: string(id), Source: source, Done: true}}, nil
}

func notKept(id holdfast.ID, source string) *api.Problem {
	detail := fmt.Sprintf("no message %s waits here", id)
	if source != "" {
		detail = fmt.Sprintf("no message %s of source %s waits here", id, api.Clip(source))
	}
	return api.NotFound.Problem(detail+"; GET /v1/inbox lists what does", api.Fault{Field: "id", Value: string(id), Problem: "is not kept here"})
}

// sourceOf finds who sent the message, if that is clear.
func (s *Server) sourceOf(ctx context.Context, id holdfast.ID) (string, *api.Problem) {
	sources, err := s.Inbox.Sources(ctx, id)
	switch {
	case err != nil:
		return "", s.refuse(ctx, "look the message up", err)
	case len(sources) == 0:
		return "", notKept(id, "")
	case len(sources) > 1:
		return "", api.Conflict.Problem(fmt.Sprintf("%d sources sent a message %s, among them %s and %s; give the source", len(sources), id, sources[0], sources[1]),
			api.Fault{Field: "source", Problem: "is missing, and the id alone does not name one message"})
	}
	return sources[0], nil
}
