package holdfast

import (
	"fmt"
	"slices"
)

// State is where a message stands in its one lifecycle:
//
//	enqueue ──► pending ──claim──► claimed ──► delivered
//	             ▲  ▲                │ ├──► pending   transient: due later
//	             │  └─── reclaim ────┘ └──► parked    permanent, budget spent, conflict, too old
//	             └── requeue (a new cycle, a fresh TTL) ── parked, expired
//	pending, parked ──ttl──► expired       parked, expired ──operator──► discarded
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
	Discarded State = 5 // a person gave it up
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

// Final says whether no dispatcher will touch the message again by itself.
func (s State) Final() bool { return s != Pending && s != Claimed }

// arrows lists, for each state, those that a message may go to from it.
var arrows = [...][]State{
	Pending:   {Claimed, Expired, Parked}, // parked: reclaimed with its budget spent
	Claimed:   {Delivered, Pending, Parked, Expired},
	Delivered: {},
	Parked:    {Pending, Expired, Discarded},
	Expired:   {Pending, Discarded},
	Discarded: {},
}

// CanBecome says whether the lifecycle has an arrow from s to next.
func (s State) CanBecome(next State) bool {
	if int(s) >= len(arrows) {
		return false
	}
	return slices.Contains(arrows[s], next)
}

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
)
