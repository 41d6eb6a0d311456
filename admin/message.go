package admin

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
)

func (s *Service) messageOf(r *holdfast.Record) api.Message {
	m := r.Message
	return api.Message{
		ID: string(m.ID), State: r.State.String(), Discarding: r.Discarding, Reason: string(r.Reason),
		Source: m.Source, Category: string(s.categoryOf(m.Destination)), Destination: m.Destination, Endpoint: m.Endpoint, Kind: string(m.Kind),
		CorrelationID: m.CorrelationID, OrderingKey: m.OrderingKey,
		Failures: r.Failures, Tries: r.Tries, Cycle: r.Cycle, Size: r.Size,
		Created: r.Created.UTC(), Due: instant(r.Due), Expires: instant(r.Expires), HeldUntil: instant(r.HeldUntil),
		LastAttempt: instant(r.LastAttempt), LastError: r.LastError, Settled: instant(r.Settled),
		OwnRetry: ownRetryOf(m.Retry), Provenance: provenanceOf(m.Headers),
	}
}

// instant returns nil for a zero time, so that JSON leaves it out.
func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func (m Messages) pageOf(p holdfast.Page) api.MessagePage {
	page := api.MessagePage{Messages: make([]api.Message, len(p.Records)), Next: p.Next, LookedUntil: p.LookedUntil.UTC()}
	for i := range p.Records {
		page.Messages[i] = m.show(&p.Records[i])
	}
	return page
}

func (m Messages) detailOf(ctx context.Context, r *holdfast.Record) api.MessageDetail {
	d := api.MessageDetail{
		Message: m.show(r), Headers: ownHeaders(r.Message.Headers),
		History: make([]api.Event, len(r.History)),
	}
	if m.there == nil { // a site's lanes are not known here
		w := m.waitFor(ctx, r)
		d.WaitsFor, d.Situation = w.text, situationOf(ctx, r, &w)
	}
	for i, e := range r.History {
		d.History[i] = eventOf(e)
	}
	d.Payload, d.PayloadBase64 = payloadOf(r.Message.Payload)
	return d
}

// payloadOf shows a JSON payload as it is, and any other in base64.
func payloadOf(payload []byte) (raw json.RawMessage, encoded string) {
	switch {
	case len(payload) == 0:
		return nil, ""
	case json.Valid(payload):
		return payload, ""
	}
	return nil, base64.StdEncoding.EncodeToString(payload)
}

func eventOf(e holdfast.Entry) api.Event {
	out := api.Event{
		At: e.At.UTC(), Event: e.Kind.String(), State: e.State.String(), Reason: string(e.Reason),
		Cycle: e.Cycle, Attempt: e.Attempt, Charged: e.Charged, Code: e.Code, HTTPStatus: holdfast.HTTPStatus(e.Code), Error: e.Error,
		MaybeReceived: e.Maybe, TookMs: float64(e.Took.Microseconds()) / 1000, Actor: e.Actor,
	}
	switch e.Kind { //nolint:exhaustive // the other kinds have no fields of their own
	case holdfast.Attempted:
		out.Outcome = e.Outcome.String()
	case holdfast.Rescheduled:
		out.Due, out.TookMs = instant(e.At.Add(e.Took)), 0
	}
	return out
}
