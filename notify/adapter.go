package notify

import (
	"context"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Adapter is the last hop of one channel. Its methods are called concurrently, at most the channel's Workers
// at a time.
type Adapter interface {
	// Send makes one attempt for these recipients. There is at least one, and none of them has accepted
	// before. Send blocks until the outcome of each is known or ctx ends. The end of ctx must not cut off
	// what may have been accepted already, as between the last dot of a mail and its answer. Send calls
	// Await and then waits for such an answer, for at most LastAnswer. The report must contain no secret.
	//
	// Each time that the other side has decided about some recipients, Send calls known before it asks about
	// further ones. What known has accepted is on disk, so a crash in the middle of a long list repeats only
	// the rest. If known returns false, Send must ask about no further recipients. It may be called
	// concurrently. Nil: only the report counts.
	Send(ctx context.Context, n *Notification, to []Recipient, known func(Part) bool) Report
	// Close closes idle connections. Send may still be called.
	Close()
}

// LastAnswer is how long an adapter may wait, after ctx has ended, for the answer to what it has sent:
// without the answer it would send again. A stop of the dispatcher waits longer than that.
const LastAnswer = 30 * time.Second

// Part is the final outcome of some recipients in the middle of an attempt.
type Part struct {
	Ends        map[int]Delivery // by the recipient's index
	Server, TLS string           // as in Report
	Truncated   bool
}

// Report is the outcome of one attempt.
type Report struct {
	// To has one entry per recipient, in order. If Fault is set, recipients with a zero entry share it.
	// Recipients that were reported as a Part are not read again.
	To []Delivery
	// Fault is what was wrong for the recipients that To does not decide. It is about the message
	// (Permanent, Transient), the channel (LaneFault, Unreachable) or neither (NotStarted). Nil: To decides
	// everything.
	Fault *holdfast.Failure
	// Served means that the other side works: if a recipient is Deferred, the cause is that recipient, so
	// the channel need not slow down for the others.
	Served bool
	// Server and TLS say which server was asked, and how the connection was secured; for people.
	Server, TLS string
	Truncated   bool // the text was cut to what the channel accepts
}

// Delivery is the outcome of one recipient.
type Delivery struct {
	Outcome Result
	Code    string // the other side's code, such as "550 5.1.1" or "http_429", or ours
	Text    string // the other side's text, at most 2 KiB, without secrets
	Receipt string // the other side's id of what it accepted, such as the queue id of a mail server
	Maybe   bool   // the answer was lost after the data was sent
	// RetryAfter is the shortest wait that the other side asks for. Zero: none.
	RetryAfter time.Duration
}

// Result is the result for one recipient. The numbers are stored and never change.
type Result uint8

// The results. Zero means that the recipient was not tried yet.
const (
	Waiting  Result = 0
	Accepted Result = 1 // the other side has accepted it
	Deferred Result = 2 // may work later
	Refused  Result = 3 // will never work
)

// Outcome returns the outcome of the attempt for this result.
func (r Result) Outcome() holdfast.Outcome {
	switch r {
	case Accepted:
		return holdfast.Succeeded
	case Deferred:
		return holdfast.Transient
	case Refused:
		return holdfast.Permanent
	case Waiting:
	}
	return holdfast.NotStarted
}

// Texts for a file that a channel names and that cannot be used. Each is the same for every cause, so that a
// person who may write channels does not learn which files the node's machine has.
const (
	BadCertificates = "is not a readable file of certificates in PEM form: check the path and its permissions on the node's machine"
	BadKeyPair      = "is not a readable certificate in PEM form that matches its key: check both paths and their permissions on the node's machine"
)
