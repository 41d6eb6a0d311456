package notify

import (
	"context"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Adapter is the last hop of one channel. Its methods are called concurrently,
// up to the channel's Workers at once.
type Adapter interface {
	// Send makes one attempt for these recipients, of whom there is at least
	// one and of whom none has accepted before. It blocks until the outcome of
	// each is known or ctx ends; ending ctx must not cut what may have been
	// accepted already, as between the last dot of a mail and its answer, for
	// which it waits LastAnswer at most, after it has said so by Await. Nothing secret may be in the report.
	//
	// Each time that the other side has said what becomes of some recipients, Send
	// calls known, before it asks about further ones: what known has taken is on
	// disk, so that whoever dies in the middle of a long list asks only the rest
	// again. Where known says false, nobody further is asked. It may be called
	// concurrently; nil: all is told by the report.
	Send(ctx context.Context, n *Notification, to []Recipient, known func(Part) bool) Report
	// Close ends idle connections. Send may still be called.
	Close()
}

// LastAnswer is how long an adapter may wait, after ctx has ended, for the
// answer to what it had sent by then: to go without it is to send it twice. A
// stop of the dispatcher waits longer than that.
const LastAnswer = 30 * time.Second

// Part is what has become of some recipients in the middle of an attempt. It
// is final.
type Part struct {
	Ends        map[int]Delivery // by the recipient's index
	Server, TLS string           // as in Report
	Truncated   bool
}

// Report is the end of one attempt.
type Report struct {
	// To has one entry per recipient, in order. Where Fault is set, those that
	// have a zero entry share it. What was told as a Part is not read again.
	To []Delivery
	// Fault is what was wrong with all that To does not decide: the message
	// (Permanent, Transient), the channel (LaneFault, Unreachable) or neither
	// (NotStarted). Nil: To says it all.
	Fault *holdfast.Failure
	// Served says that the other side did its work: whoever is Deferred was put
	// off by itself, and is no reason to slow the channel down for the others.
	Served bool
	// Server and TLS say who was asked, and how safely; for people.
	Server, TLS string
	Truncated   bool // the text was cut to what the channel takes
}

// Delivery is what became of one recipient.
type Delivery struct {
	Outcome Result
	Code    string // the other side's: "550 5.1.1", "http_429", or ours
	Text    string // what it said, at most 2 KiB, nothing secret
	Receipt string // what the other side calls what it has taken: the queue id of a mail server
	Maybe   bool   // the answer was lost after the data had left
	// RetryAfter is the least wait that the other side asks for; zero: none.
	RetryAfter time.Duration
}

// Result is how one recipient stands. The numbers are stored and never change.
type Result uint8

// The results. The zero one is of a recipient that nobody was asked about yet.
const (
	Waiting  Result = 0
	Accepted Result = 1 // the other side has taken it
	Deferred Result = 2 // may work later
	Refused  Result = 3 // will never work
)

// Outcome is what the result says of the attempt.
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

// What the fault of a channel's setting says of a file. It is one text for
// every cause, so that whoever may write channels does not learn from it which
// files the node's machine has.
const (
	BadCertificates = "is no file of certificates in PEM form that the node may read: check the path and its permissions on the node's machine"
	BadKeyPair      = "is no certificate in PEM form that the node may read and that fits its key: check both paths and their permissions on the node's machine"
)
