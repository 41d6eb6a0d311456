package admin

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/notify"
)

// message turns a request into the library's message, and reports what it cannot read. holdfast.Normalize
// checks the fields themselves.
func (s *Service) message(ctx context.Context, req *api.NewMessage, key string) (holdfast.Message, []api.Fault) {
	o := originOf(ctx, req)
	m := holdfast.Message{
		ID: holdfast.ID(req.ID), Source: req.Source, Destination: req.Destination, Endpoint: req.Endpoint,
		Kind: holdfast.Kind(req.Kind), CorrelationID: req.CorrelationID, OrderingKey: req.OrderingKey,
		Headers: withOrigin(req.Headers, o), Payload: req.Payload,
	}
	if len(m.Payload) == 0 {
		m.Payload = []byte("null")
	}
	id, faults := idOf(req.ID, key)
	m.ID = id
	faults = slices.Concat(faults, s.checkCategory(req), api.FaultsOf(notify.CheckHeaders(req.Headers)), api.FaultsOf(o.Validate()))
	d, known := s.destination(req.Destination)
	if !known && req.Destination != "" {
		faults = append(faults, s.unknownDestination(req.Destination))
	}
	m.TTL = d.TTL
	if req.TTL != "" {
		ttl, fault := ttlOf(req.TTL)
		m.TTL, faults = ttl, append(faults, fault...)
	}
	if req.Delay != "" {
		delay, problem := parseDuration(req.Delay)
		if problem != "" {
			faults = append(faults, api.Fault{Field: "delay", Value: api.Clip(req.Delay), Problem: problem})
		}
		m.Delay = delay
	}
	retry, fault := retryOf(req)
	m.Retry = retry
	return m, append(faults, fault...)
}

// originOf returns the origin that a request gives, with the trace that it is a part of.
func originOf(ctx context.Context, req *api.NewMessage) notify.Origin {
	return notify.Origin{
		Instance: req.OriginInstance, Script: req.SourceScript, Execution: req.ExecutionID, ParentExecution: req.ParentExecutionID, Trace: traceOf(ctx),
	}
}

// idOf returns the id from the body or from the Idempotency-Key header.
func idOf(inBody, key string) (holdfast.ID, []api.Fault) {
	if len(key) > 1 && key[0] == '"' && key[len(key)-1] == '"' {
		key = key[1 : len(key)-1] // quoted, as in the draft standard of the header
	}
	if key == "" {
		return holdfast.ID(inBody), nil // Normalize checks it
	}
	id, err := holdfast.ParseID(key)
	if err != nil {
		return holdfast.ID(inBody), []api.Fault{{Field: "Idempotency-Key", Value: api.Clip(key), Problem: "is not a message id: 1 to 128 printable ASCII characters without spaces"}}
	}
	if inBody == "" {
		return id, nil
	}
	if other, err := holdfast.ParseID(inBody); err == nil && other != id {
		return holdfast.ID(inBody), []api.Fault{{Field: "Idempotency-Key", Value: api.Clip(key), Problem: fmt.Sprintf("differs from the body's id %q; leave one of them out", api.Clip(inBody))}}
	}
	return holdfast.ID(inBody), nil
}

// ttlOf reads a TTL; "none" means no expiry.
func ttlOf(text string) (time.Duration, []api.Fault) {
	if text == "none" {
		return 0, nil
	}
	ttl, problem := parseDuration(text)
	switch {
	case problem != "":
		problem += ", or none"
	case ttl == 0:
		problem = "would end at once; write none for no expiry"
	}
	if problem != "" {
		return 0, []api.Fault{{Field: "ttl", Value: api.Clip(text), Problem: problem}}
	}
	return ttl, nil
}

func (s *Service) unknownDestination(name string) api.Fault {
	known := map[string]Destination{}
	for _, d := range s.Destinations() {
		known[d.Name] = d
	}
	return api.Fault{Field: "destination", Value: api.Clip(name), Problem: "is not a destination of this node; " + knownAs(known)}
}
