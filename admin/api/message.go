package api

import (
	"encoding/json"
	"time"
)

// Message is a message as lists show it.
type Message struct {
	ID            string `json:"id" doc:"The message id: the idempotency key of every attempt." example:"0190c5a2-7b1e-7c3d-9a4f-1d2e3f405162"`
	State         string `json:"state" enum:"pending,claimed,delivered,parked,expired,discarded" doc:"Where it stands. pending waits to be tried; claimed is being tried; the others are final until an operator acts."`
	Discarding    bool   `json:"discarding,omitempty" doc:"It was discarded while it was being tried. It ends with that attempt, unless the attempt delivers it."`
	Reason        string `json:"reason,omitempty" doc:"Why it is parked: exhausted, permanent, conflict, too_old, too_large, undecodable, no_endpoint; or discarded: operator, or rejected: it was refused at its first try, and its sender was told."`
	Source        string `json:"source" doc:"The node or service that sends it."`
	Category      string `json:"category,omitempty" doc:"The category of its destination: external-system, cached-db-write, notification or another; absent: a peer, or a destination that the node does not know any more. For a message at a site, the site's category."`
	Destination   string `json:"destination" doc:"Where it goes."`
	Endpoint      string `json:"endpoint" doc:"What is called there."`
	Kind          string `json:"kind" enum:"Signal,Command,PushCall,Response" doc:"What it is to its receiver."`
	CorrelationID string `json:"correlationId,omitempty" doc:"Ties the messages of one conversation together."`
	OrderingKey   string `json:"orderingKey,omitempty" doc:"At most one message of a key is in flight."`
	Failures      int    `json:"failures" doc:"Failed attempts of this cycle that count against the retry budget."`
	Tries         int    `json:"tries" doc:"Attempts of this cycle, counted or not; those after the first are its retries."`
	OwnRetry
	Cycle       int        `json:"cycle" doc:"From 1; each retry by an operator starts another."`
	Size        int        `json:"size" doc:"Bytes of the payload."`
	Created     time.Time  `json:"created" doc:"When it was accepted."`
	Due         *time.Time `json:"due,omitempty" doc:"When it is tried next; only while pending."`
	Expires     *time.Time `json:"expires,omitempty" doc:"When its TTL ends; absent: never."`
	HeldUntil   *time.Time `json:"heldUntil,omitempty" doc:"The node doubts its clock, which says that the TTL is over. Until this time at most, the message is neither delivered nor ended, unless somebody runs, reschedules, retries or discards it. Absent: it is not held."`
	LastAttempt *time.Time `json:"lastAttempt,omitempty" doc:"Absent: never tried."`
	LastError   string     `json:"lastError,omitempty" doc:"What the last attempt said."`
	Settled     *time.Time `json:"settled,omitempty" doc:"When it became final."`
	Provenance
}

// MessageDetail is a message with everything that is known about it.
type MessageDetail struct {
	Message
	WaitsFor      string            `json:"waitsFor,omitempty" doc:"Why it has not been sent yet, or what it needs, in words." example:"retry 3 of 5 in 12s"`
	Situation     *Situation        `json:"situation,omitempty" doc:"The same for a person, with what can be done. Absent: the message is at a site, whose lanes are not known here."`
	Headers       map[string]string `json:"headers,omitempty" doc:"Sent with it; not part of its identity."`
	History       []Event           `json:"history" nullable:"false" doc:"What happened to it, oldest first. An uneventful delivery may leave no entry, only the state."`
	PayloadBase64 string            `json:"payloadBase64,omitempty" doc:"The payload, if it is not JSON."`
	Payload       json.RawMessage   `json:"payload,omitempty" doc:"The payload, byte by byte as it was sent."`
}

// Event is one entry in the history of a message.
type Event struct {
	At            time.Time  `json:"at"`
	Event         string     `json:"event" doc:"enqueued, attempted, requeued (an operator's retry), rescheduled, discarded (with the state claimed: it will be, after the attempt under way), expired or reclaimed (its node was gone)."`
	Due           *time.Time `json:"due,omitempty" doc:"For rescheduled: the new time of the next try."`
	State         string     `json:"state" enum:"pending,claimed,delivered,parked,expired,discarded" doc:"After it."`
	Reason        string     `json:"reason,omitempty"`
	Cycle         int        `json:"cycle"`
	Attempt       int        `json:"attempt,omitempty" doc:"Its number in the cycle, from 1."`
	Outcome       string     `json:"outcome,omitempty" enum:"delivered,transient,permanent,lane_fault,unreachable,not_started" doc:"Of an attempt."`
	Charged       bool       `json:"charged,omitempty" doc:"It counts against the retry budget."`
	Code          string     `json:"code,omitempty" doc:"A short, stable name of what went wrong." example:"connection_refused"`
	HTTPStatus    int        `json:"httpStatus,omitempty" doc:"The other side's HTTP status, if the attempt failed with one." example:"503"`
	Error         string     `json:"error,omitempty"`
	MaybeReceived bool       `json:"maybeReceived,omitempty" doc:"The data was sent but no answer came: the other side may have taken it."`
	TookMs        float64    `json:"tookMs,omitempty" doc:"How long the attempt took, in milliseconds."`
	Actor         string     `json:"actor,omitempty" doc:"Who did it: the name of a token, or local."`
}

// MessagePage is one page of a list.
type MessagePage struct {
	Messages    []Message `json:"messages" nullable:"false" doc:"Newest first. A page may have few, even none, and still a next one."`
	Next        string    `json:"next,omitempty" doc:"Pass it as after to get the next page; absent: no more."`
	Count       *Count    `json:"count,omitempty" doc:"How many there are on all pages, if it was asked for."`
	LookedUntil time.Time `json:"lookedUntil,omitzero" doc:"No index leads to what is asked for, and the page is not full yet: all messages were looked at that were accepted since then. next goes on from there. Lists of a category, and those for a narrowed token, leave it out."`
}

// Count is how many messages a list has on all its pages.
type Count struct {
	Count int  `json:"count"`
	More  bool `json:"more,omitempty" doc:"There are more, or may be: it was not counted any further."`
}

// AppendJSON writes the message as JSON, and keeps the payload's bytes.
func (d MessageDetail) AppendJSON() ([]byte, error) {
	raw := d.Payload
	d.Payload = nil
	return Spliced(d, "payload", raw)
}

// OwnRetry is the retry policy that a message brings itself, as in NewMessage.
type OwnRetry struct {
	MaxRetries    *int   `json:"maxRetries,omitempty" doc:"Its own limit of retries after the first attempt; retries that reach nobody do not count. 0: without limit; -1: never retried, which only a Go program can ask for. Absent: the destination's."`
	RetryInterval string `json:"retryInterval,omitempty" doc:"Its own fixed wait between two attempts. Absent: the destination's waits, or growing waits of its own, which only a Go program can give." example:"30s"`
}

// Provenance says where a message comes from, in addition to its source. A field is empty if the sender did not say.
type Provenance struct {
	OriginInstance    string `json:"originInstance,omitempty" doc:"Which instance of a program it comes from."`
	SourceScript      string `json:"sourceScript,omitempty" doc:"Which script or program part it comes from."`
	ExecutionID       string `json:"executionId,omitempty" doc:"Which run of the script."`
	ParentExecutionID string `json:"parentExecutionId,omitempty" doc:"Which run started that run."`
	TraceID           string `json:"traceId,omitempty" doc:"The id of the trace that it was sent in (W3C Trace Context): the sender's request had a traceparent." example:"4bf92f3577b34da6a3ce929d0e0e4736"`
}
