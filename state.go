package holdfast

import (
	"fmt"
	"slices"
)

// State is where a message stands in its one lifecycle:
//
//	enqueue ──► pending ──claim──► claimed ──► delivered
//	             ▲  ▲                │ ├──► pending     transient: due later
//	             │  └─── reclaim ────┘ ├──► parked      permanent, budget spent, conflict, too old
//	             │                     └──► discarded   refused at the first try, and its caller was told
//	             └── requeue (a new cycle, a fresh TTL) ── parked, expired, discarded
//	pending, parked ──ttl──► expired
//	pending, parked, expired ──discard──► discarded
//	claimed ──discard──► discarded, once the attempt has ended, unless it delivered the message
//	pending, claimed ──reschedule──► the same, due at another time
//
// This file is the only place that lists the arrows. The numbers are stored
// and never change.
type State uint8

// The states. The zero State is Pending.
const (
	Pending   State = 0 // waits to be tried
	Claimed   State = 1 // a node is trying it
	Delivered State = 2 // the other side has acknowledged it
	Parked    State = 3 // set aside until a person decides
	Expired   State = 4 // its TTL passed first
	Discarded State = 5 // a person gave it up, or its caller was told that it is refused
)

var stateNames = [...]string{"pending", "claimed", "delivered", "parked", "expired", "discarded"}

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// MarshalText writes the state's name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a state's name.
func (s *State) UnmarshalText(text []byte) error {
	v, err := ParseState(string(text))
	*s = v
	return err
}

// ParseState reads a state's name.
func ParseState(name string) (State, error) {
	for i, n := range stateNames {
		if n == name {
			return State(i), nil
		}
	}
	return 0, fmt.Errorf("%w: %w", ErrInvalid, &FieldError{"state", clip(name), "must be one of pending, claimed, delivered, parked, expired, discarded"})
}

// Final reports whether no dispatcher will touch the message again by itself.
func (s State) Final() bool { return s != Pending && s != Claimed }

// arrows lists, for each state, the states that a message may go to from it.
var arrows = [...][]State{
	Pending:   {Claimed, Expired, Parked, Discarded}, // parked: reclaimed with its budget spent
	Claimed:   {Delivered, Pending, Parked, Expired, Discarded},
	Delivered: {},
	Parked:    {Pending, Expired, Discarded},
	Expired:   {Pending, Discarded},
	Discarded: {Pending},
}

// CanBecome reports whether the lifecycle has an arrow from s to next.
func (s State) CanBecome(next State) bool {
	if int(s) >= len(arrows) {
		return false
	}
	return slices.Contains(arrows[s], next)
}

// Verb is an action of a person on a message.
type Verb uint8

// The verbs.
const (
	VerbRequeue    Verb = iota + 1 // Outbox.Requeue: pending again, in a new cycle
	VerbDiscard                    // Outbox.Discard
	VerbReschedule                 // Outbox.Reschedule: stays as it is, due at another time
)

// States lists the states in which a person may use the verb. On a Claimed message
// it takes effect when the attempt has ended.
func (v Verb) States() []State {
	switch v {
	case VerbRequeue:
		return []State{Parked, Expired, Discarded}
	case VerbDiscard:
		return []State{Pending, Claimed, Parked, Expired}
	case VerbReschedule:
		return []State{Pending, Claimed}
	}
	return nil
}

// From reports whether a person may use the verb on a message in state s.
func (v Verb) From(s State) bool { return slices.Contains(v.States(), s) }

// Reason says why a message is parked or discarded.
type Reason string

// The reasons.
const (
	ReasonExhausted   Reason = "exhausted"   // the retry budget is spent
	ReasonPermanent   Reason = "permanent"   // the other side will never take it
	ReasonConflict    Reason = "conflict"    // the receiver knows the id with other content
	ReasonTooOld      Reason = "too_old"     // the receiver may have forgotten the id
	ReasonTooLarge    Reason = "too_large"   // the receiver's limit is smaller
	ReasonUndecodable Reason = "undecodable" // the stored payload cannot be sent
	ReasonOperator    Reason = "operator"    // a person's decision
	ReasonNoEndpoint  Reason = "no_endpoint" // the receiver does not know the endpoint
	ReasonRejected    Reason = "rejected"    // discarded: refused at the first try, as its caller was told
)
