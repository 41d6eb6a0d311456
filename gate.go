package holdfast

import (
	"context"
	"errors"
	"time"
)

// Bounds of one endpoint's forwards: how many run at once, and how many more wait.
const (
	forwardsAtOnce  = 16
	forwardsWaiting = 48
)

// gate bounds the calls of one endpoint, so that a program that does not answer holds up
// only its own messages.
type gate struct {
	slots   chan struct{}
	waiting chan struct{}
}

// gate returns the endpoint's own gate. Only endpoints that Map names have one.
func (e *Endpoints) gate(endpoint string) *gate {
	if _, ok := e.Map[endpoint]; !ok {
		endpoint = "" // all endpoints that Other serves share one gate
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gates == nil {
		e.gates = map[string]*gate{}
	}
	g := e.gates[endpoint]
	if g == nil {
		g = &gate{slots: make(chan struct{}, forwardsAtOnce), waiting: make(chan struct{}, forwardsWaiting)}
		e.gates[endpoint] = g
	}
	return g
}

var errBusy = errors.New("the endpoint is at its limit of calls")

// enter waits for a slot. Its error says that the call has not begun.
func (g *gate) enter(ctx context.Context) (leave func(), err error) {
	leave = func() { <-g.slots }
	select {
	case g.slots <- struct{}{}:
		return leave, nil
	default:
	}
	select {
	case g.waiting <- struct{}{}:
		defer func() { <-g.waiting }()
	default:
		return nil, &Failure{Outcome: NotStarted, Code: "endpoint_busy", RetryAfter: time.Second, Err: errBusy}
	}
	select {
	case g.slots <- struct{}{}:
		return leave, nil
	case <-ctx.Done():
		return nil, notBegun(ctx)
	}
}
