package admin

import (
	"context"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/notify"
)

// asNotification turns the message of a request into a notification that central can read.
func (s *Service) asNotification(ctx context.Context, req *api.NewMessage, m *holdfast.Message) (faults []api.Fault) {
	if req.Endpoint != notify.Endpoint {
		faults = append(faults, api.Fault{Field: "endpoint", Value: api.Clip(req.Endpoint), Problem: "is not " + notify.Endpoint + ", which is all that central takes; leave it out"})
	}
	if req.Source != "" {
		faults = append(faults, api.Fault{Field: "source", Value: api.Clip(req.Source), Problem: "cannot be chosen: a notification comes from this site (SF-19)"})
	}
	o := originOf(ctx, req)
	o.Enqueued = time.Now()
	m.Headers = withOrigin(req.Headers, o)
	if _, err := notify.Decode(*m); err != nil {
		faults = append(faults, payloadFault(err)...)
	}
	return faults
}

// notifyByMessage takes a notification that came as a message, on a node that itself delivers notifications
// to channels.
func (m Messages) notifyByMessage(ctx context.Context, req *api.NewMessage, key string, faults []api.Fault) (sent Sent, err error) {
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"destination", req.Destination != ""},
		{"source", req.Source != ""},
		{"endpoint", req.Endpoint != "" && req.Endpoint != notify.Endpoint},
		{"kind", req.Kind != ""},
		{"correlationId", req.CorrelationID != ""},
		{"orderingKey", req.OrderingKey != ""},
		{"headers", len(req.Headers) > 0},
		{"ttl", req.TTL != ""},
		{"delay", req.Delay != ""},
		{"maxRetries", req.MaxRetries != nil},
		{"retryInterval", req.RetryInterval != ""},
		{"wait", req.Wait != ""},
	} {
		if f.given {
			faults = append(faults, api.Fault{Field: f.name, Problem: "does not apply to a notification here: it goes to the channels of its list, which have their own; leave it out"})
		}
	}
	id, wrong := idOf(req.ID, key)
	faults = append(faults, wrong...)
	n, err := notify.Decode(holdfast.Message{ID: id, Source: m.From(), Payload: req.Payload})
	if err != nil {
		faults = append(faults, payloadFault(err)...)
	}
	n.Origin = originOf(ctx, req)
	n.ID, n.Origin.Site, n.Origin.Enqueued = id, m.From(), time.Now()
	r, p := m.tell(ctx, n, faults)
	if p != nil {
		return sent, p
	}
	return Sent{m.accepted(ctx, holdfast.Message{}, &holdfast.Submission{ID: r.ID, State: r.State, Duplicate: r.Duplicate}), true}, nil
}

// payloadFault reports what is wrong with the payload of a notification.
func payloadFault(err error) []api.Fault {
	list := api.FaultsOf(err)
	if len(list) == 0 {
		return []api.Fault{{Field: "payload", Problem: "is not a notification: " + err.Error()}}
	}
	for i := range list {
		list[i].Field = "payload." + list[i].Field
	}
	return list
}
