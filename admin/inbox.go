package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// Inbox offers the received messages that wait to be fetched.
type Inbox struct{ *Service }

// Kept returns a page of them, oldest first.
func (i Inbox) Kept(ctx context.Context, q holdfast.KeptQuery) (out api.KeptPage, err error) {
	page, err := i.Inbox.Kept(ctx, q)
	if err != nil {
		return out, i.refuse(ctx, "list the inbox", err)
	}
	out = api.KeptPage{Messages: make([]api.KeptMessage, len(page.Messages)), Next: page.Next}
	for at, k := range page.Messages {
		m := k.Message
		kept := api.KeptMessage{
			ID: string(m.ID), Source: m.Source, Endpoint: m.Endpoint, Kind: string(m.Kind),
			CorrelationID: m.CorrelationID, Headers: m.Headers, Received: k.Received.UTC(), Damaged: k.Damaged,
		}
		kept.Payload, kept.PayloadBase64 = payloadOf(m.Payload)
		out.Messages[at] = kept
	}
	return out, nil
}

// Done marks a message done. Its repeats get the given response.
func (i Inbox) Done(ctx context.Context, text string, req *api.DoneRequest, wrong ...api.Fault) (is api.Done, err error) {
	id, p := parseID(text)
	if p != nil {
		return is, p
	}
	if len(wrong) > 0 {
		return is, api.Faulty(wrong...)
	}
	if size := int64(len(req.Response)); size > i.LargestPayload() {
		return is, api.TooLarge.Problem(fmt.Sprintf("the response has %d bytes; this node takes at most %d", size, i.LargestPayload()),
			api.Fault{Field: "response", Value: fmt.Sprintf("%d bytes", size), Problem: fmt.Sprintf("at most %d bytes are taken", i.LargestPayload())})
	}
	source := req.Source
	if source == "" {
		if source, p = i.sourceOf(ctx, id); p != nil {
			return is, p
		}
	}
	err = i.Inbox.Done(ctx, source, id, req.Response)
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		return is, notKept(id, source)
	case errors.Is(err, holdfast.ErrState):
		return is, api.Conflict.Problem(fmt.Sprintf("message %s of %s is done already with another response; the first one stands", id, source),
			api.Fault{Field: "response", Problem: "is not the response that the message was marked done with"})
	case err != nil:
		return is, i.refuse(ctx, "mark the message done", err)
	}
	return api.Done{ID: string(id), Source: source, Done: true}, nil
}

func notKept(id holdfast.ID, source string) *api.Problem {
	detail := fmt.Sprintf("no message %s waits here", id)
	if source != "" {
		detail = fmt.Sprintf("no message %s of source %s waits here", id, api.Clip(source))
	}
	return api.NotFound.Problem(detail+"; GET /v1/inbox lists those that do", api.Fault{Field: "id", Value: string(id), Problem: "is not kept here"})
}

// sourceOf finds the sender of a message, if only one is possible.
func (i Inbox) sourceOf(ctx context.Context, id holdfast.ID) (string, *api.Problem) {
	sources, err := i.Inbox.Sources(ctx, id)
	switch {
	case err != nil:
		return "", i.refuse(ctx, "look the message up", err)
	case len(sources) == 0:
		return "", notKept(id, "")
	case len(sources) > 1:
		return "", api.Conflict.Problem(fmt.Sprintf("%d sources sent a message %s, among them %s and %s; give the source", len(sources), id, sources[0], sources[1]),
			api.Fault{Field: "source", Problem: "is missing, and the id alone does not name one message"})
	}
	return sources[0], nil
}
