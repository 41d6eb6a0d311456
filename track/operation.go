package track

import (
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
)

// Status is the status of an operation (SF-21).
type Status string

// The statuses.
const (
	Submitted Status = "submitted" // on disk; no attempt has failed
	Retrying  Status = "retrying"  // an attempt has failed; another will be made
	Delivered Status = "delivered"
	Failed    Status = "failed" // the first attempt was refused permanently (SF-25)
	Parked    Status = "parked" // waits for a person
	Expired   Status = "expired"
	Discarded Status = "discarded"
)

// Statuses returns all of them.
func Statuses() []Status {
	return []Status{Submitted, Retrying, Delivered, Failed, Parked, Expired, Discarded}
}

// Operation is a call or a write as its program sees it later.
type Operation struct {
	ID          holdfast.ID
	Category    holdfast.Category // empty: the destination is not known any more
	Destination string
	Endpoint    string
	Node        string // that has it; empty: the node has no name
	Status      Status
	Retries     int    // attempts after the first of its cycle
	Failures    int    // attempts of its cycle that failed and count against its budget
	LastError   string // of the last attempt that failed
	Code        string // of the same attempt: "http_422"
	Origin      notify.Origin
	Retry       *holdfast.RetryPolicy // its own retries; nil: its destination's
	Created     time.Time
	LastAttempt time.Time // zero: never tried
	Ended       time.Time // zero: not yet
	Purged      bool      // the message is gone; this is its record

	Seq int64 // the store's number of the message
}

// HTTPStatus returns the HTTP status of the last attempt that failed; 0 if it had none.
func (o *Operation) HTTPStatus() int { return holdfast.HTTPStatus(o.Code) }

// Updated returns when the operation was taken, last tried or ended, whichever came last.
func (o *Operation) Updated() time.Time {
	last := o.Created
	for _, t := range []time.Time{o.LastAttempt, o.Ended} {
		if t.After(last) {
			last = t
		}
	}
	return last
}

// Of returns the operation that a message is. Its category is the caller's affair.
func Of(r *holdfast.Record) Operation {
	m := &r.Message
	o := Operation{
		ID: m.ID, Destination: m.Destination, Endpoint: m.Endpoint, Status: StatusOf(r), Retries: max(r.Tries-1, 0), Failures: r.Failures,
		LastError: r.LastError, Code: r.LastCode, Origin: notify.OriginOf(m.Headers), Retry: m.Retry,
		Created: r.Created, LastAttempt: r.LastAttempt, Ended: r.Settled, Seq: r.Seq,
	}
	o.Origin.Site = m.Source
	return o
}

// StatusOf returns the status of a message.
func StatusOf(r *holdfast.Record) Status {
	switch r.State {
	case holdfast.Delivered:
		return Delivered
	case holdfast.Expired:
		return Expired
	case holdfast.Discarded:
		if r.Reason == holdfast.ReasonRejected {
			return Failed
		}
		return Discarded
	case holdfast.Parked:
		if r.Cycle == 1 && r.Tries == 1 && r.Reason != holdfast.ReasonExhausted {
			return Failed
		}
		return Parked
	case holdfast.Pending, holdfast.Claimed:
	}
	if r.Tries > 0 {
		return Retrying
	}
	return Submitted
}
