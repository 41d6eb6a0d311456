package admin

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// message makes the library's message of a request; what it cannot read it
// reports. The fields themselves are checked by holdfast.Normalize.
func (s *Server) message(req NewMessage, key string) (holdfast.Message, []Fault) {
	m := holdfast.Message{
		ID: holdfast.ID(req.ID), Source: req.Source, Destination: req.Destination, Endpoint: req.Endpoint,
		Kind: holdfast.Kind(req.Kind), CorrelationID: req.CorrelationID, OrderingKey: req.OrderingKey,
		Headers: req.Headers, Payload: req.Payload,
	}
	if len(m.Payload) == 0 {
		m.Payload = []byte("null")
	}
	id, faults := idOf(req.ID, key)
	m.ID = id
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
			faults = append(faults, Fault{"delay", clip(req.Delay), problem})
		}
		m.Delay = delay
	}
	if n := req.MaxRetries; n != nil {
		switch {
		case *n < 0:
			faults = append(faults, Fault{"maxRetries", fmt.Sprint(*n), "must not be negative; 0 means without limit"})
		case *n > mostRetries:
			faults = append(faults, Fault{"maxRetries", fmt.Sprint(*n), fmt.Sprintf("must be at most %d; 0 means without limit", mostRetries)})
		case *n == 0:
			m.Retry = &holdfast.RetryPolicy{Attempts: holdfast.Unlimited}
		default:
			m.Retry = &holdfast.RetryPolicy{Attempts: *n + 1} // the first attempt is not a retry (SF-29)
		}
	}
	return m, faults
}

// idOf takes the id of the body or of the Idempotency-Key header.
func idOf(inBody, key string) (holdfast.ID, []Fault) {
	if len(key) > 1 && key[0] == '"' && key[len(key)-1] == '"' {
		key = key[1 : len(key)-1] // as the header's draft standard writes it
	}
	if key == "" {
		return holdfast.ID(inBody), nil // Normalize checks it
	}
	id, err := holdfast.ParseID(key)
	if err != nil {
		return holdfast.ID(inBody), []Fault{{"Idempotency-Key", clip(key), "is not a message id: 1 to 128 printable ASCII characters without spaces"}}
	}
	if inBody == "" {
		return id, nil
	}
	if other, err := holdfast.ParseID(inBody); err == nil && other != id {
		return holdfast.ID(inBody), []Fault{{"Idempotency-Key", clip(key), fmt.Sprintf("differs from the body's id %q; leave one of them out", clip(inBody))}}
	}
	return holdfast.ID(inBody), nil
}

// ttlOf reads a TTL; "none" is no expiry.
func ttlOf(text string) (time.Duration, []Fault) {
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
		return 0, []Fault{{"ttl", clip(text), problem}}
	}
	return ttl, nil
}

func (s *Server) unknownDestination(name string) Fault {
	const most = 20
	known := make([]string, 0, most)
	all := s.Destinations()
	for _, d := range all {
		known = append(known, d.Name)
	}
	slices.Sort(known)
	list := "there are none"
	switch {
	case len(known) > most:
		list = fmt.Sprintf("known are %s and %d more", strings.Join(known[:most], ", "), len(known)-most)
	case len(known) > 0:
		list = "known are " + strings.Join(known, ", ")
	}
	return Fault{"destination", clip(name), "is not a destination of this node; " + list}
}
