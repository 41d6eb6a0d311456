package api

import "time"

// Cause is why messages are parked: errors of one destination and code that differ in ids, numbers, addresses and
// quoted words only.
type Cause struct {
	ID          string    `json:"id" doc:"Names the cause in filters: cause of GET /v1/messages, and filter.cause of POST /v1/bulk." example:"3f0a1c52e97b4d08"`
	Destination string    `json:"destination" doc:"channel: and a name, if it is a channel of notifications."`
	Code        string    `json:"code,omitempty" doc:"Of the last error." example:"connection_refused"`
	Error       string    `json:"error" doc:"The last error, with placeholders for what differs." example:"order ‹n› is unknown"`
	Count       int64     `json:"count" doc:"Of the messages that were looked at."`
	First       time.Time `json:"first" doc:"The earliest last attempt, of a message that was never tried when it was accepted."`
	Last        time.Time `json:"last" doc:"The latest."`
	Sample      string    `json:"sample" doc:"The id of the newest message."`
	SampleError string    `json:"sampleError" doc:"Its last error, as it is."`
}

// CauseList is the causes of parked messages, the most frequent first.
type CauseList struct {
	Causes      []Cause   `json:"causes" nullable:"false" doc:"At most 500."`
	Looked      int64     `json:"looked" doc:"How many parked messages were looked at, the newest, 100,000 at most."`
	Others      int64     `json:"others,omitempty" doc:"How many of them have causes that are not listed, because there are too many causes."`
	More        bool      `json:"more,omitempty" doc:"There may be parked messages that were not looked at."`
	LookedUntil time.Time `json:"lookedUntil,omitzero" doc:"Those that were accepted before then were not looked at. Absent: all were, unless more says otherwise; several destinations have no common time, and a narrowed token is not told it."`
}
