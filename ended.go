package holdfast

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// EndedDestination is where the notices of messages that parked or expired
// wait for the dispatcher's callbacks. Nobody else can enqueue for it.
const EndedDestination = "$ended"

// Ended tells a callback which message parked or expired, and why. The message
// itself, with payload and history, is still in the store: Outbox.Get has it,
// and Outbox.Requeue tries it again.
type Ended struct {
	ID            ID        `json:"id"`
	Source        string    `json:"source"`
	Destination   string    `json:"destination"`
	Endpoint      string    `json:"endpoint"`
	Kind          Kind      `json:"kind"`
	CorrelationID string    `json:"correlation_id,omitempty"`
	OrderingKey   string    `json:"ordering_key,omitempty"`
	State         State     `json:"state"` // Parked or Expired
	Reason        Reason    `json:"reason,omitempty"`
	Code          string    `json:"code,omitempty"`  // of the last attempt: short and stable
	Error         string    `json:"error,omitempty"` // of the last attempt
	Cycle         int       `json:"cycle"`
	Tries         int       `json:"tries"` // of this cycle
	At            time.Time `json:"at"`
}

// Message is the notice, as a store writes it in the transaction that ended
// the message.
func (e *Ended) Message() (Message, error) {
	payload, err := json.Marshal(e)
	if err != nil {
		return Message{}, fmt.Errorf("encode notice of message %s: %w", e.ID, err)
	}
	return Message{
		ID: NewID(), Source: e.Source, Destination: EndedDestination, Endpoint: e.State.String(), Kind: Signal,
		CorrelationID: e.CorrelationID, Payload: payload, Attempt: Attempt{Cycle: 1},
	}, nil
}

// endings delivers notices to the callbacks.
type endings struct {
	parked, expired func(ctx context.Context, e Ended) error
}

// Deliver calls the callback that the notice is for. Without that callback, the notice
// is dropped.
func (n endings) Deliver(ctx context.Context, m Message) (Receipt, error) {
	var e Ended
	if err := json.Unmarshal(m.Payload, &e); err != nil {
		return Receipt{}, &Failure{Outcome: Permanent, Code: "undecodable", Reason: ReasonUndecodable, Err: err}
	}
	call := n.parked
	if e.State == Expired {
		call = n.expired
	}
	if call != nil {
		if err := call(ctx, e); err != nil {
			return Receipt{}, err
		}
	}
	return Receipt{ID: m.ID, State: Delivered}, nil
}

var errEndedRoute = fmt.Errorf("%w: route %s: the destination is for the callbacks OnParked and OnExpired", ErrInvalid, EndedDestination)

// callbacks says which callbacks a dispatcher has.
type callbacks struct{ parked, expired bool }

var errCallbacks = fmt.Errorf("%w: another dispatcher of the store has other callbacks: set the same of OnParked and OnExpired in both, or Beside in one", ErrState)

// asks notes which callbacks the dispatcher of a subscription has. kept says that this
// dispatcher has none and another one of the process has some: the store's setting stays
// as it is (F1-40).
func (w *Wake) asks(c callbacks) (kept bool, err error) {
	none := callbacks{}
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	for other := range w.of.list {
		switch {
		case other == w || other.asked == none || other.asked == c:
		case c == none:
			return true, nil
		default:
			return false, errCallbacks
		}
	}
	w.asked = c
	return false, nil
}

// routes returns the dispatcher's own routes and the route of the notices. The store
// learns which notices to write; notices that wait already are delivered in any case.
func (d *Dispatcher) routes(ctx context.Context, r *dispatch) (map[string]*laneRoute, error) {
	routes, err := d.present(r)
	if err != nil {
		return nil, err
	}
	if d.Beside {
		return routes, nil
	}
	// A run that is told to stop before it has begun did not fail.
	needed, err := d.askNotices(context.WithoutCancel(ctx), r.wake)
	if err != nil {
		return nil, err
	}
	if !needed {
		return routes, nil
	}
	own := Route{Deliverer: endings{d.OnParked, d.OnExpired}, Retry: RetryPolicy{Attempts: Unlimited}, ChargeAll: true}
	if err := own.check(EndedDestination); err != nil {
		return nil, err
	}
	routes[EndedDestination] = newLaneRoute(own)
	return routes, nil
}

// askNotices tells the store to write the notices that the dispatcher has callbacks for,
// and reports whether it needs a route for them. One dispatcher at a time asks, so that
// the store is told last what was decided last.
func (d *Dispatcher) askNotices(ctx context.Context, wake *Wake) (needed bool, err error) {
	wake.of.asking <- struct{}{}
	defer func() { <-wake.of.asking }()
	own := callbacks{d.OnParked != nil, d.OnExpired != nil}
	if kept, err := wake.asks(own); err != nil || kept {
		return false, err
	}
	waiting, err := d.Store.NotifyEnded(ctx, own.parked, own.expired)
	return waiting || own.parked || own.expired, err
}
