package api

import "time"

// DecidedNotification is the answer to a person's decision.
type DecidedNotification struct {
	ID     string        `json:"id"`
	Site   string        `json:"site"`
	Copies []DecidedCopy `json:"copies" nullable:"false" doc:"All copies, including those that were left as they were."`
}

// DecidedCopy is the effect of a decision on one copy.
type DecidedCopy struct {
	Channel string `json:"channel"`
	Message string `json:"message"`
	Status  string `json:"status" enum:"pending,retrying,delivered,parked,discarded" doc:"Now."`
	Changed bool   `json:"changed" doc:"Changed by this request. Copies whose state does not allow it are left as they are."`

	Discarding  bool       `json:"discarding,omitempty" doc:"It is being tried. It is discarded when that attempt has ended, unless it is delivered."`
	NextAttempt *time.Time `json:"nextAttempt,omitempty" doc:"Absent: none is planned, or it is being tried."`
}

// RetryNotification is what POST /v1/notifications/{id}/retry takes.
type RetryNotification struct {
	Channel string `json:"channel,omitempty" doc:"Only the copy over this channel. Absent: all that are parked or discarded." example:"mail"`
}

// DiscardNotification is what POST /v1/notifications/{id}/discard takes.
type DiscardNotification struct {
	Channel string `json:"channel,omitempty" doc:"Only the copy over this channel. Absent: all that are neither delivered nor discarded." example:"mail"`
	Reason  string `json:"reason,omitempty" maxLength:"1024" doc:"The reason, in one line. It goes into the node's log with the name of the person." example:"the alarm is over"`
}

// RunNotification is what POST /v1/notifications/{id}/run takes.
type RunNotification struct {
	Channel string `json:"channel,omitempty" doc:"Only the copy over this channel. Absent: all that are pending or retrying." example:"mail"`
}

// RescheduleNotification is what POST /v1/notifications/{id}/reschedule takes. It has one of In and At.
type RescheduleNotification struct {
	Channel string `json:"channel,omitempty" doc:"Only the copy over this channel. Absent: all that are pending or retrying." example:"mail"`
	In      string `json:"in,omitempty" doc:"How long from now, as a duration." example:"2h"`
	At      string `json:"at,omitempty" doc:"When, by the node's clock, as RFC 3339 writes it; excludes in." example:"2026-11-30T06:00:00Z"`
}
