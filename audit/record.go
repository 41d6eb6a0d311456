package audit

import (
	"encoding/json"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Channel is the way that an event went.
type Channel string

// The channels. Their names are stored and never change.
const (
	APIOutbound  Channel = "ApiOutbound" // calls of foreign systems
	DBOutbound   Channel = "DbOutbound"  // writes into foreign databases
	Notification Channel = "Notification"
	APIInbound   Channel = "ApiInbound" // calls of the node's own API
	Message      Channel = "Message"    // between nodes
	Webhook      Channel = "Webhook"
	Operator     Channel = "Operator" // what people did
	System       Channel = "System"   // what the node did by itself
)

// Kind is what has happened. Its names are stored and never change.
type Kind string

// The kinds.
const (
	CachedCall     Kind = "CachedCall"     // of a foreign system or database
	NotifySend     Kind = "NotifySend"     // a notification was accepted
	NotifyDeliver  Kind = "NotifyDeliver"  // NO-13
	NotifyReach    Kind = "NotifyReach"    // one recipient was asked; the attempt as a whole is a NotifyDeliver
	WebhookDeliver Kind = "WebhookDeliver" // an event, to one subscription
	MessageSend    Kind = "MessageSend"    // to a peer
	MessageReceive Kind = "MessageReceive" // from a peer
	APICall        Kind = "ApiCall"

	Retry       Kind = "Retry"
	Discard     Kind = "Discard"
	Reschedule  Kind = "Reschedule"
	Pause       Kind = "Pause"
	Resume      Kind = "Resume"
	ListChange  Kind = "List"
	ChannelKind Kind = "Channel"
	TokenChange Kind = "Token"
	SiteChange  Kind = "Site"

	PersonChange Kind = "Person"

	TopicChange        Kind = "Topic"
	SubscriptionChange Kind = "Subscription"
	ScheduleChange     Kind = "Schedule" // of subscriptions without one of their own
	Config             Kind = "Configuration"
	SignIn             Kind = "SignIn"
	Export             Kind = "Export"
	HoldKind           Kind = "Hold"
	Release            Kind = "Release"
	EraseKind          Kind = "Erase"

	Opened    Kind = "Opened"    // the first record of a log
	Purged    Kind = "Purged"    // a prefix of the log
	KeyChange Kind = "KeyChange" // the log's signing key
	Copied    Kind = "Copied"    // records of another log, into this store
	Gap       Kind = "Gap"       // calls that could not be recorded
)

// Status is how it ended. Its names are stored and never change.
type Status string

// The statuses.
const (
	Submitted Status = "Submitted"
	Enqueued  Status = "Enqueued"
	Attempted Status = "Attempted"
	Delivered Status = "Delivered"
	Parked    Status = "Parked"
	Expired   Status = "Expired"
	Discarded Status = "Discarded"
	Success   Status = "Success"
	Refused   Status = "Refused" // the caller's fault
	Failed    Status = "Failed"
)

// IsError reports whether records with this status count as errors (AU-07).
func (s Status) IsError() bool {
	switch s {
	case Success, Delivered, Enqueued, Attempted, Submitted, Discarded:
		return false
	case Parked, Expired, Refused, Failed:
	}
	return true
}

// Limits of a record, in bytes.
const (
	MaxSummary      = 8 << 10  // of a request or response
	MaxErrorSummary = 64 << 10 // the same, of a record whose status is an error
	MaxText         = 1 << 10  // of any other text
)

// Record is one event.
type Record struct {
	ID       holdfast.ID // of the event: the same event has the same ID wherever it is kept
	Occurred time.Time   // truncated to microseconds
	Channel  Channel
	Kind     Kind
	Status   Status

	Correlation string // of the message or notification
	Execution   string
	Parent      string // execution that started it
	Trace       string // W3C trace id

	Site     string // notify.UnknownSite if the node has none (SF-26)
	Node     string
	Instance string
	Script   string
	Actor    string // a person, a token, or SystemActor
	Target   string // what it was done to: a destination, list, recipient, route

	HTTP  int // status; zero: none
	Took  time.Duration
	Error string // in words; empty: none

	Request, Response string // summaries; see MaxSummary
	Extra             json.RawMessage

	// Personal names the fields that are sealed: "target", "error", "request", "response".
	Personal []string
	// Erased names the sealed fields whose value was erased. Only a record that was read has it.
	Erased []string
}
