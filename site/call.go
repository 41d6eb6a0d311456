package site

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
)

// DefaultWait is how long a call waits for the outcome of its first attempt by default.
const DefaultWait = 10 * time.Second

// Call is one call of a foreign system, or one write to a database. Only Destination and Endpoint
// are required.
type Call struct {
	Destination string
	Endpoint    string // what is called there: {endpoint} in a URL, or the name of a statement
	Payload     []byte // nil: null; for the adapters of a node it must be JSON
	// ID is the operation id and the idempotency key of every attempt. Zero: a new id. The same id
	// with the same content is the same call (SF-14).
	ID            holdfast.ID
	CorrelationID string
	OrderingKey   string // calls with the same key are made one after the other
	Headers       map[string]string
	Origin        notify.Origin // the calling instance, script and run; its site is the Site's

	Retries  int           // retries after the first attempt; zero: the destination's; holdfast.Unlimited: no limit
	Interval time.Duration // fixed wait between two attempts; zero: the destination's
	TTL      time.Duration // after this time the call expires; zero: the destination's

	// Wait is how long the call waits for the outcome of its first attempt. Zero: DefaultWait. It
	// does not wait for a destination that is down.
	Wait time.Duration
	// Later buffers the call and returns without waiting for an attempt (SF-05).
	Later bool
}

// Answer is the outcome of a call.
type Answer struct {
	ID    holdfast.ID
	State holdfast.State // Delivered, or the present state
	// Buffered means that the call is on disk and will be tried, for the first time or again.
	Buffered  bool
	Duplicate bool   // the id was known with the same content: nothing new was taken
	Response  []byte // the target's answer; nil for a duplicate or a buffered call
	// Failure is the failure of the first attempt, if the call will be tried again.
	Failure *holdfast.Failure
}

// CachedCall calls a foreign system (category external-system). If the target has acted, its
// response is in the answer. If it cannot act now, the call is buffered, which is no error. A
// RefusedError means that the target will never accept the call; an EndedError means that a call
// with this id was given up or has expired. After any other error, such as ErrInvalid, ErrConflict
// or ErrDiskFull, nothing was taken. If ctx ends, the call stays buffered.
func (s *Site) CachedCall(ctx context.Context, c Call) (Answer, error) {
	return s.Submit(ctx, holdfast.CategoryExternalSystem, c)
}

// CachedWrite writes to a foreign database (category cached-db-write). It answers as CachedCall
// does.
func (s *Site) CachedWrite(ctx context.Context, c Call) (Answer, error) {
	return s.Submit(ctx, holdfast.CategoryCachedDBWrite, c)
}

// Submit is CachedCall for any category, including the program's own categories.
func (s *Site) Submit(ctx context.Context, category holdfast.Category, c Call) (Answer, error) {
	m, err := s.message(category, &c)
	if err != nil {
		return Answer{}, err
	}
	wait := c.Wait
	switch _, served := s.dispatcher.Routes[c.Destination]; {
	case c.Later, !served:
		wait = 0
	case wait == 0:
		wait = DefaultWait
	}
	sub, err := s.submitter.Submit(ctx, m, wait)
	a := Answer{ID: sub.ID, State: sub.State, Buffered: !sub.State.Final(), Duplicate: sub.Duplicate}
	if err != nil {
		a.Buffered = false
		return a, err
	}
	if sub.Attempt != nil {
		a.Failure, a.Response = sub.Attempt.Failure, sub.Attempt.Response
	}
	return a, nil
}

// message converts a call to a message.
func (s *Site) message(category holdfast.Category, c *Call) (holdfast.Message, error) {
	d, known := s.conf.Destinations[c.Destination]
	var faults []error
	bad := func(field, value, problem string) {
		faults = append(faults, &holdfast.FieldError{Field: field, Value: value, Problem: problem})
	}
	switch {
	case !known:
		bad("destination", fmt.Sprintf("%.80s", c.Destination), "is not a destination of this site; known are "+strings.Join(slices.Sorted(maps.Keys(s.conf.Destinations)), ", "))
	case d.Category != category:
		bad("category", string(category), "does not match destination "+c.Destination+", which is "+string(d.Category))
	}
	switch {
	case c.Wait < 0:
		bad("wait", c.Wait.String(), "must not be negative; set Later to wait for nothing")
	case c.Later && c.Wait > 0:
		bad("wait", c.Wait.String(), "must not be set with Later, which waits for no attempt")
	}
	if c.Retries < holdfast.Unlimited {
		bad("retries", fmt.Sprint(c.Retries), "must be positive, 0 for the destination's or Unlimited")
	}
	if c.Interval < 0 {
		bad("interval", c.Interval.String(), "must not be negative")
	}
	faults = append(faults, notify.CheckHeaders(c.Headers), c.Origin.Validate())
	if err := errors.Join(faults...); err != nil {
		return holdfast.Message{}, fmt.Errorf("%w: %w", holdfast.ErrInvalid, err)
	}
	m := holdfast.Message{
		ID: c.ID, Source: s.conf.Name, Destination: c.Destination, Endpoint: c.Endpoint, CorrelationID: c.CorrelationID, OrderingKey: c.OrderingKey,
		Payload: c.Payload, Headers: c.headers(), TTL: c.TTL, Retry: c.retry(),
	}
	if m.Payload == nil {
		m.Payload = []byte("null")
	}
	if m.TTL == 0 {
		m.TTL = d.TTL
	}
	return m, nil
}

func (c *Call) headers() map[string]string {
	o := c.Origin
	o.Enqueued = time.Time{} // the row has it
	h := o.Headers()
	maps.Copy(h, c.Headers)
	if len(h) == 0 {
		return nil
	}
	return h
}

// retry returns the policy that a call sets, in whole or in part, or nil.
func (c *Call) retry() *holdfast.RetryPolicy {
	var p holdfast.RetryPolicy
	switch {
	case c.Retries > 0:
		p.Attempts = c.Retries + 1 // the first attempt is not a retry (SF-29)
	case c.Retries == holdfast.Unlimited:
		p.Attempts = holdfast.Unlimited
	case c.Interval == 0:
		return nil
	}
	if c.Interval > 0 {
		p.First, p.Max, p.Factor = c.Interval, c.Interval, 1
	}
	return &p
}
