package holdfast

import (
	"context"
	"errors"
	"time"
)

// Bounds of one endpoint's forwards: so many run at once, so many more wait.
const (
	forwardsAtOnce  = 16
	forwardsWaiting = 48
)

// gate bounds the calls of one endpoint, so that a program that does not
// answer holds up nothing but itself.
type gate struct {
	slots   chan struct{}
	waiting chan struct{}
}

// gate returns the endpoint's own. Only endpoints that are known have one.
func (e *Endpoints) gate(endpoint string) *gate {
	if _, ok := e.Map[endpoint]; !ok {
		endpoint = "" // all that Other stands for share one
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

var errBusy = errors.New("the endpoint has as many calls as it may have")

// enter waits for a slot, or says that the call cannot even begin.
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
