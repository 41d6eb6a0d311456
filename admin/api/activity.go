package api

import "time"

// Activity is one thing that happened to a message.
type Activity struct {
	Seq         int64     `json:"seq" doc:"Its place in the log; it grows by one from line to line."`
	At          time.Time `json:"at"`
	Kind        string    `json:"kind" enum:"queued,delivered,retried,parked,retry,discard,disabled" doc:"retried: an attempt failed, and another follows. retry, discard: what a person did; a discard without an actor is a message that was refused at its first try, as its caller was told. disabled: a node has disabled a subscription, of which each attempt has failed for too long; it has no message, and its error says why."`
	Message     string    `json:"message" doc:"The message's id."`
	Destination string    `json:"destination"`
	Attempt     int       `json:"attempt,omitempty" doc:"The number of the attempt in its cycle."`
	Cycle       int       `json:"cycle,omitempty"`
	Actor       string    `json:"actor,omitempty" doc:"Who did it: a token's name, or local."`
	Reason      string    `json:"reason,omitempty" doc:"Why the message was set aside."`
	Code        string    `json:"code,omitempty" doc:"Of a failed attempt."`
	Error       string    `json:"error,omitempty" doc:"Of a failed attempt."`
	TraceParent string    `json:"traceparent,omitempty" doc:"The sender's trace context, while the message is kept. A stream has none."`
	Provenance
}

// ActivityPage is one page of the activity log, newest first.
type ActivityPage struct {
	Activities []Activity `json:"activities" nullable:"false"`
	Next       int64      `json:"next,omitempty" doc:"Give it as after for the next page; absent: this is the last. A page of a filter that finds little may have few activities, or none, and a next."`
}

// ActivityNews is one event of the stream of activities.
type ActivityNews struct {
	Activities []Activity `json:"activities" nullable:"false" doc:"Oldest first, at most 500."`
	Last       int64      `json:"last" doc:"All activities up to this one were sent or did not match. It is the event's id."`
	Missed     int64      `json:"missed,omitempty" doc:"How many lines of the log before these were left out, because the reader was more than 10,000 behind. They can be listed."`
}
