package notify

import (
	"encoding/json"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Endpoint is what a notification's message calls, on its way from a site to
// central.
const Endpoint = "notification"

// Notification is what people are told, and where it comes from (NO-02).
type Notification struct {
	ID      holdfast.ID
	Type    string          // what its author calls it; for people and rules, not for delivery
	List    string          // who gets it
	Subject string          // one line
	Body    string          // plain text
	Data    json.RawMessage // what a program that receives it may read; nil: none
	Origin  Origin
}

// Origin is where a notification comes from. Every field may be empty but Site,
// which central takes from the credential and never from the sender's word
// (SF-19, SF-26).
type Origin struct {
	Site            string
	Instance        string
	Script          string
	Execution       string
	ParentExecution string
	Enqueued        time.Time // when the site took it; zero: it does not say
}

// Status is how a notification stands (NO-03). It is read off the states of
// its messages.
type Status string

// The statuses.
const (
	Forwarding Status = "forwarding" // still at its site; never stored at central
	Pending    Status = "pending"
	Retrying   Status = "retrying"
	Delivered  Status = "delivered"
	Parked     Status = "parked"
	Discarded  Status = "discarded"
)

// StatusOf is the status of a message in a state, of which so many tries failed.
func StatusOf(s holdfast.State, tries int) Status {
	switch s {
	case holdfast.Delivered:
		return Delivered
	case holdfast.Parked, holdfast.Expired:
		return Parked
	case holdfast.Discarded:
		return Discarded
	case holdfast.Pending, holdfast.Claimed:
	}
	if tries > 0 {
		return Retrying
	}
	return Pending
}
