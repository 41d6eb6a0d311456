package api

import (
	"encoding/json"
	"time"
)

// NewEvent is what POST /v1/events takes.
type NewEvent struct {
	ID         string            `json:"id,omitempty" maxLength:"128" doc:"The event id, unique within its source. Absent: the node mints one. Send the same id again when you do not know whether a request arrived."`
	Source     string            `json:"source,omitempty" maxLength:"128" doc:"Who it is from. Absent: the node." example:"shop"`
	Topic      string            `json:"topic" maxLength:"128" doc:"A topic of GET /v1/topics." example:"orders"`
	Type       string            `json:"type,omitempty" maxLength:"128" doc:"What has happened. Absent: the name of the topic." example:"order.paid"`
	Subject    string            `json:"subject,omitempty" maxLength:"1000" doc:"What it happened to." example:"order-42"`
	Time       *time.Time        `json:"time,omitempty" doc:"When it happened. Absent: now."`
	Attributes map[string]string `json:"attributes,omitempty" doc:"More about it, for filters and receivers."`
	Data       json.RawMessage   `json:"data,omitempty" doc:"Any JSON; delivered byte by byte as it is sent. Absent: null."`
}

// EventAccepted is the answer when an event is stored.
type EventAccepted struct {
	ID         string `json:"id" doc:"The event id, in its canonical form."`
	Source     string `json:"source"`
	Accepted   bool   `json:"accepted" doc:"Always true: a refusal is a problem document."`
	Durability string `json:"durability" doc:"How far it is safe: local is on this node's disk." example:"local"`
	Duplicate  bool   `json:"duplicate" doc:"The id was known, with the same content: this request changed nothing."`
	Matched    int    `json:"matched" doc:"How many subscriptions it is for. An event that is for none is stored all the same."`
}

// StoredEvent is an event without its data.
type StoredEvent struct {
	ID          string            `json:"id"`
	Source      string            `json:"source"`
	Topic       string            `json:"topic"`
	Type        string            `json:"type"`
	Subject     string            `json:"subject,omitempty"`
	Time        time.Time         `json:"time" doc:"When it happened, as its publisher says."`
	Attributes  map[string]string `json:"attributes,omitempty"`
	ContentType string            `json:"contentType,omitempty" doc:"Of the data. Absent: application/json."`
	Actor       string            `json:"actor,omitempty" doc:"Who published it."`
	Received    time.Time         `json:"received" doc:"When it was stored."`
	Matched     int               `json:"matched" doc:"How many subscriptions it is for."`
}

// EventPage is a page of events, newest first.
type EventPage struct {
	Events []StoredEvent `json:"events" nullable:"false"`
	Next   string        `json:"next,omitempty" doc:"Send it as after for the next page. Absent: there is none."`
}

// EventDetail is an event with its data and what became of it.
type EventDetail struct {
	StoredEvent
	Data       json.RawMessage `json:"data,omitempty" doc:"Byte by byte as it was published."`
	Deliveries []EventDelivery `json:"deliveries" nullable:"false" doc:"One for each subscription that it is for."`
	Next       string          `json:"next,omitempty" doc:"Send it as after for the next deliveries. Absent: there are none."`
}

// AppendJSON writes the event as JSON, and keeps the bytes of its data.
func (d EventDetail) AppendJSON() ([]byte, error) {
	raw := d.Data
	d.Data = nil
	return Spliced(d, "data", raw)
}

// EventDelivery is the part of one subscription in an event, or in a resend of it.
type EventDelivery struct {
	Subscription string     `json:"subscription"`
	Message      string     `json:"message" doc:"The id of the message, which is the webhook-id of each attempt. A resend has the webhook-id of the first message to its subscription."`
	State        string     `json:"state" enum:"pending,claimed,delivered,parked,expired,discarded,unknown" doc:"Of the message."`
	Attempts     int        `json:"attempts,omitempty"`
	LastError    string     `json:"lastError,omitempty" doc:"What the last attempt said."`
	Next         *time.Time `json:"next,omitempty" doc:"When it is tried next."`
	WaitsFor     string     `json:"waitsFor,omitempty" doc:"Why it has not been sent yet, or what it needs, in words."`
	Settled      *time.Time `json:"settled,omitempty" doc:"When it became final."`
	Purged       bool       `json:"purged,omitempty" doc:"Of the message only this is left."`
	Resend       string     `json:"resend,omitempty" doc:"The id of the resend that it came of. Absent: it came with the event."`
	Actor        string     `json:"actor,omitempty" doc:"Who asked for the resend."`
}

// EventExplanation says of each subscription why it got an event or not, as it was when the event came.
type EventExplanation struct {
	Event         StoredEvent             `json:"event"`
	Subscriptions []ExplainedSubscription `json:"subscriptions" nullable:"false" doc:"By id."`
	Next          string                  `json:"next,omitempty" doc:"Send it as after for the next page. Absent: there is none."`
}

// ExplainedSubscription is one subscription as it was when an event came.
type ExplainedSubscription struct {
	ID       string         `json:"id"`
	URL      string         `json:"url,omitempty"`
	State    string         `json:"state" enum:"active,paused,disabled" doc:"Of the subscription, then."`
	Matched  bool           `json:"matched"`
	Why      string         `json:"why,omitempty" doc:"Why it did not match."`
	Delivery *EventDelivery `json:"delivery,omitempty" doc:"What became of the event there."`
}
