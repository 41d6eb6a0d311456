package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// KeptMessage is a received message that waits to be fetched.
type KeptMessage struct {
	ID            string            `json:"id"`
	Source        string            `json:"source" doc:"Who sent it; id and source together name it."`
	Endpoint      string            `json:"endpoint"`
	Kind          string            `json:"kind" enum:"Signal,Command,PushCall,Response"`
	CorrelationID string            `json:"correlationId,omitempty"`
	Headers       map[string]string `json:"headers,omitempty"`
	Received      time.Time         `json:"received"`
	Damaged       bool              `json:"damaged,omitempty" doc:"What the store holds is not what was accepted; payload and headers are left out. It can be marked done."`
	PayloadBase64 string            `json:"payloadBase64,omitempty" doc:"The payload, where it is not JSON."`
	Payload       json.RawMessage   `json:"payload,omitempty" doc:"The payload, byte by byte as it was received."`
}

// KeptPage is one page of received messages.
type KeptPage struct {
	Messages []KeptMessage `json:"messages" nullable:"false" doc:"Oldest first."`
	Next     int64         `json:"next,omitempty" doc:"Pass it as after to get the next page; absent: no more."`
}

// DoneRequest is what POST /v1/inbox/{id}/done takes.
type DoneRequest struct {
	Source   string          `json:"source,omitempty" doc:"Who sent the message. Absent: it is found, if only one message that still waits has this id."`
	Response json.RawMessage `json:"response,omitempty" doc:"Any JSON: what a repeat of the message is answered with."`
}

// Done is the answer to a message that was marked done.
type Done struct {
	ID     string `json:"id"`
	Source string `json:"source"`
	Done   bool   `json:"done" doc:"Always true."`
}

type inboxInput struct {
	Endpoint string `query:"endpoint" doc:"Only this endpoint."`
	After    int64  `query:"after" minimum:"0" doc:"The next of the page before."`
	Limit    int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"How many at most."`
}

type inboxOutput struct{ Body KeptPage }

type doneInput struct {
	ID      string `path:"id" doc:"The message id; a UUID in any form."`
	Content body
}

type doneOutput struct{ Body Done }

func (b *builder) inbox() {
	handle(b, route{
		method: http.MethodGet, path: "/v1/inbox", id: "list-inbox", tag: "inbox", role: Read,
		summary: "List received messages", description: "Messages of endpoints that keep them, until they are marked done.",
	}, b.kept)
	handle(b, route{
		method: http.MethodPost, path: "/v1/inbox/{id}/done", id: "finish-inbox", tag: "inbox", role: Operate,
		summary: "Mark a received message done",
		description: "It leaves the list; its id is remembered, so that a repeat is answered with the response. " +
			"Marking it again with the same response is no error.",
		problems: map[kind]string{
			kindNotFound: "No such message is kept.",
			kindConflict: "It is done already with another response, or several sources sent this id: give the source.",
			kindDiskFull: "The disk is full; nothing was changed.",
		},
		request: reflect.TypeFor[DoneRequest](), bodyLimit: b.maxPayload() + smallBody,
		requestSample: json.RawMessage(`{"source":"engine","response":{"reserved":true}}`),
	}, b.done)
}

func (s *Server) kept(ctx context.Context, in *inboxInput) (*inboxOutput, error) {
	page, err := s.Inbox.Kept(ctx, holdfast.KeptQuery{Endpoint: in.Endpoint, Limit: in.Limit, After: in.After})
	if err != nil {
		return nil, s.refuse(ctx, "list the inbox", err)
	}
	out := KeptPage{Messages: make([]KeptMessage, len(page.Messages)), Next: page.Next}
	for i, k := range page.Messages {
		m := k.Message
		kept := KeptMessage{
			ID: string(m.ID), Source: m.Source, Endpoint: m.Endpoint, Kind: string(m.Kind),
			CorrelationID: m.CorrelationID, Headers: m.Headers, Received: k.Received.UTC(), Damaged: k.Damaged,
		}
		kept.Payload, kept.PayloadBase64 = payloadOf(m.Payload)
		out.Messages[i] = kept
	}
	return &inboxOutput{out}, nil
}

// appendJSON keeps the payloads' bytes.
func (p KeptPage) appendJSON() ([]byte, error) {
	list := bytes.NewBufferString("[")
	for i, m := range p.Messages {
		raw := m.Payload
		m.Payload = nil
		data, err := spliced(m, "payload", raw)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			list.WriteByte(',')
		}
		list.Write(data)
	}
	list.WriteByte(']')
	rest := struct {
		Next int64 `json:"next,omitempty"`
	}{p.Next}
	return spliced(rest, "messages", list.Bytes())
}

func (s *Server) done(ctx context.Context, in *doneInput) (*doneOutput, error) {
	id, p := parseID(in.ID)
	if p != nil {
		return nil, p
	}
	var req DoneRequest
	faults, p := in.Content.decode(&req)
	if p != nil {
		return nil, p
	}
	if len(faults) > 0 {
		return nil, invalid(faults...)
	}
	if size := int64(len(req.Response)); size > s.maxPayload() {
		return nil, kindTooLarge.problem(fmt.Sprintf("the response has %d bytes; this node takes at most %d", size, s.maxPayload()),
			Fault{Field: "response", Value: fmt.Sprintf("%d bytes", size), Problem: fmt.Sprintf("at most %d bytes are taken", s.maxPayload())})
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
		return nil, kindConflict.problem(fmt.Sprintf("message %s of %s is done already with another response; the first one stands", id, source),
			Fault{Field: "response", Problem: "is not the response that the message was marked done with"})
	case err != nil:
		return nil, s.refuse(ctx, "mark the message done", err)
	}
	return &doneOutput{Done{ID: string(id), Source: source, Done: true}}, nil
}

func notKept(id holdfast.ID, source string) *Problem {
	detail := fmt.Sprintf("no message %s waits here", id)
	if source != "" {
		detail = fmt.Sprintf("no message %s of source %s waits here", id, clip(source))
	}
	return kindNotFound.problem(detail+"; GET /v1/inbox lists what does", Fault{Field: "id", Value: string(id), Problem: "is not kept here"})
}

// sourceOf finds who sent the message, if that is clear.
func (s *Server) sourceOf(ctx context.Context, id holdfast.ID) (string, *Problem) {
	sources, err := s.Inbox.Sources(ctx, id)
	switch {
	case err != nil:
		return "", s.refuse(ctx, "look the message up", err)
	case len(sources) == 0:
		return "", notKept(id, "")
	case len(sources) > 1:
		return "", kindConflict.problem(fmt.Sprintf("%d sources sent a message %s, among them %s and %s; give the source", len(sources), id, sources[0], sources[1]),
			Fault{Field: "source", Problem: "is missing, and the id alone does not name one message"})
	}
	return sources[0], nil
}
