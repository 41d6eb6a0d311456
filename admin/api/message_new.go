package api

import "encoding/json"

// NewMessage is what POST /v1/messages takes.
type NewMessage struct {
	ID            string            `json:"id,omitempty" maxLength:"128" doc:"The message id, 1 to 128 printable ASCII characters; a UUID in any form is one value. Absent: the node mints one. Send the same id again when you do not know whether a request arrived."`
	Source        string            `json:"source,omitempty" maxLength:"128" doc:"Who sends it. Absent: the node."`
	Category      string            `json:"category,omitempty" maxLength:"128" doc:"What kind of work it is: external-system, cached-db-write, notification, or another category of the node. It must be the destination's. Absent: not checked." example:"external-system"`
	Destination   string            `json:"destination,omitempty" maxLength:"128" doc:"Where it goes: one of GET /v1/destinations. A notification needs none." example:"inventory"`
	Endpoint      string            `json:"endpoint,omitempty" maxLength:"128" doc:"What is called there. A notification needs none." example:"OrderApproved"`
	Kind          string            `json:"kind,omitempty" enum:"Signal,Command,PushCall,Response" doc:"Absent: Signal."`
	CorrelationID string            `json:"correlationId,omitempty" maxLength:"128" doc:"Ties the messages of one conversation together."`
	OrderingKey   string            `json:"orderingKey,omitempty" maxLength:"128" doc:"At most one message of a key is in flight, in the order of acceptance. Absent: no order."`
	Headers       map[string]string `json:"headers,omitempty" doc:"Sent with it; not part of its identity. At most 64, 8 KiB together. Names that begin with hf- are the node's own."`
	TTL           string            `json:"ttl,omitempty" doc:"How long to try to deliver it: a duration such as 90s, 24h, 7d or 2w, or none. Absent: the destination's." example:"24h"`
	Delay         string            `json:"delay,omitempty" doc:"The earliest first attempt, as a duration from now. Absent: at once." example:"5m"`
	MaxRetries    *int              `json:"maxRetries,omitempty" minimum:"0" maximum:"1000000" doc:"Retries after the first attempt; 0: without limit, until the TTL ends. Absent: the destination's."`
	RetryInterval string            `json:"retryInterval,omitempty" doc:"A fixed wait between two attempts, as a duration. Absent: the destination's retries." example:"30s"`
	Wait          string            `json:"wait,omitempty" doc:"How long to wait for the first attempt's outcome, at most 1m; 0s: answer as soon as it is on disk. Absent: 10s for a destination that is a call or a database, else 0s." example:"10s"`

	AttemptImmediately *bool `json:"attemptImmediately,omitempty" doc:"false: answer as soon as it is on disk, and do not wait for an attempt. Absent: true."`

	OriginInstance    string `json:"originInstance,omitempty" maxLength:"256" doc:"Which instance of a program it comes from; kept even when that instance is gone."`
	SourceScript      string `json:"sourceScript,omitempty" maxLength:"256" doc:"Which script or program part it comes from."`
	ExecutionID       string `json:"executionId,omitempty" maxLength:"256" doc:"Which run of the script."`
	ParentExecutionID string `json:"parentExecutionId,omitempty" maxLength:"256" doc:"Which run started that run."`

	Payload json.RawMessage `json:"payload,omitempty" doc:"Any JSON. Its bytes are kept, signed and sent as they are. Absent: null."`
}

// Accepted is the answer when a message is taken.
type Accepted struct {
	ID         string `json:"id" doc:"The message id, in its canonical form."`
	State      string `json:"state" enum:"pending,claimed,delivered,parked,expired,discarded" doc:"Where the message stands now."`
	Accepted   bool   `json:"accepted" doc:"Always true: a refusal is a problem document."`
	Buffered   bool   `json:"buffered" doc:"It waits in the outbox or is being tried."`
	Durability string `json:"durability" doc:"How far it is safe: local is on this node's disk." example:"local"`
	Duplicate  bool   `json:"duplicate" doc:"The id was known, with the same content: this request changed nothing."`

	Outcome        string          `json:"outcome,omitempty" enum:"delivered,transient,lane_fault,unreachable" doc:"Of the first attempt, if the request waited for it."`
	LastError      string          `json:"lastError,omitempty" doc:"What the first attempt said, if it failed."`
	Note           string          `json:"note,omitempty" doc:"Why the destination's answer is missing although it did its work: the answer was cut off or too long."`
	ResponseBase64 string          `json:"responseBase64,omitempty" doc:"The destination's answer, if it is not JSON."`
	Response       json.RawMessage `json:"response,omitempty" doc:"The destination's answer, byte by byte. It is not kept: a repeat does not get it."`
}

// AppendJSON writes the answer as JSON, and keeps the bytes of the response.
func (a Accepted) AppendJSON() ([]byte, error) {
	raw := a.Response
	a.Response = nil
	return Spliced(a, "response", raw)
}
