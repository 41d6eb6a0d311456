package notify

import (
	"encoding/json"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Endpoint is the endpoint of a notification's message on its way from a site to central.
const Endpoint = "notification"

// Notification is a notification to people, with its origin (NO-02).
type Notification struct {
	ID      holdfast.ID
	Type    string          // the author's name for its type; for people and rules, not for delivery
	List    string          // name of the list of recipients
	Subject string          // one line
	Body    string          // plain text
	Data    json.RawMessage // for programs that receive it; may be nil
	Origin  Origin
}

// Origin says where a notification comes from. Every field may be empty except Site. Central takes
// Site from the credential, never from the sender's claim (SF-19, SF-26).
type Origin struct {
	Site            string
	Instance        string
	Script          string
	Execution       string
	ParentExecution string
	Trace           holdfast.Trace // that it was sent in; need not be valid
	Enqueued        time.Time      // when the site took it; zero: unknown
}

// Status is the status of a notification (NO-03), derived from the states of its messages.
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

// StatusOf returns the status of a message in a state, after the given number of tries.
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
