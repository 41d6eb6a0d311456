package holdfast

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Errors that a caller branches on. Texts and wrapped causes may change.
var (
	// ErrInvalid is wrapped by every refusal of a message's or policy's fields. The
	// FieldErrors inside name the fields.
	ErrInvalid = errors.New("invalid")
	// ErrConflict says that the id belongs to a message with other content.
	ErrConflict = errors.New("conflict: the id belongs to a message with other content")
	// ErrNotFound says that the message, token or inbox row is not kept.
	ErrNotFound = errors.New("not found")
	// ErrState says that the requested change does not start from the message's present
	// state. Nothing was changed.
	ErrState = errors.New("state does not allow this")
	// ErrDiskFull says that the disk had no room. Nothing was accepted; the
	// same call may succeed later.
	ErrDiskFull = errors.New("disk full")
	// ErrUnavailable says that the store cannot do this now, for a reason that
	// passes. Nothing was accepted; the same call may succeed later.
	ErrUnavailable = errors.New("not available now")
	// ErrUnknown says that the answer to the commit was lost: whether the call has taken
	// effect is unknown. Repeat the call with the same ids to find out.
	ErrUnknown = errors.New("outcome of the commit unknown")
	// ErrClosed says that the store has been closed or stopped itself.
	ErrClosed = errors.New("store closed")
	// ErrTooOld says that this receiver may have known the id and forgotten it. Taking the
	// message could repeat its effect.
	ErrTooOld = errors.New("too old: first tried before this receiver's memory of ids begins")
	// ErrNested says that Enqueue or Do was called inside Do or a handler, where it would
	// wait for itself. Use the transaction that was passed.
	ErrNested = errors.New("called inside a transaction of the same store; use the transaction that was passed in")
)

// FieldError names a field, its value and what is wrong with it.
type FieldError struct{ Field, Value, Problem string }

func (e *FieldError) Error() string { return fmt.Sprintf("%s %q %s", e.Field, e.Value, e.Problem) }

// Outcome classifies the end of an attempt. The code that knows the foreign system
// classifies it once (design: section 7).
type Outcome uint8

// The outcomes. The zero value is Transient: an error that nobody recognised is tried
// again. The numbers are stored and never change.
const (
	Transient   Outcome = 0 // charged; tried again by the policy
	Permanent   Outcome = 1 // charged; parks
	LaneFault   Outcome = 2 // not charged; the whole lane is held, and then probed
	Unreachable Outcome = 3 // nobody was reached and nothing was taken: not charged by default
	NotStarted  Outcome = 4 // counts as never tried
	Succeeded   Outcome = 5
)

func (o Outcome) String() string {
	switch o {
	case Transient:
		return "transient"
	case Permanent:
		return "permanent"
	case LaneFault:
		return "lane_fault"
	case Unreachable:
		return "unreachable"
	case NotStarted:
		return "not_started"
	case Succeeded:
		return "delivered"
	}
	return fmt.Sprintf("outcome(%d)", uint8(o))
}

// Failure is the error of a Deliverer or Receiver that knows what went wrong.
// Every other error counts as Transient. Its text is shown to operators and
// must not hold secrets or payloads.
type Failure struct { //nolint:errname // the word of the field; it is read, not only returned
	Outcome        Outcome
	Code           string        // short and stable, for people and metrics: "connection_refused"
	Reason         Reason        // why a Permanent failure parks; zero: ReasonPermanent
	RetryAfter     time.Duration // the least wait that the other side asked for
	MaybeDelivered bool          // the data was sent, but no answer came
	// Served says that the destination did its work and put off this message alone, as a
	// mail server does for one full mailbox. The message is charged and waits as Outcome
	// says, and its lane counts a success. With LaneFault and NotStarted, Served has no
	// effect.
	Served bool
	Answer string // what the other side answered, as far as it may be kept: without secrets; empty: nothing
	Err    error
}

// HTTPStatus returns the HTTP status that a code of a failure names, as "http_422" does; 0 if it names none.
func HTTPStatus(code string) int {
	digits, found := strings.CutPrefix(code, "http_")
	if status, err := strconv.Atoi(digits); found && err == nil && status > 0 {
		return status
	}
	return 0
}

// served reports whether the destination works, whatever it does with the message. Nil is
// a delivery.
func (f *Failure) served() bool {
	return f == nil || f.Outcome == Permanent || f.Served && f.Outcome != LaneFault && f.Outcome != NotStarted
}

func (f *Failure) Error() string {
	switch {
	case f.Err != nil:
		return f.Err.Error()
	case f.Code != "":
		return f.Code
	}
	return f.Outcome.String()
}

func (f *Failure) Unwrap() error { return f.Err }

// AsFailure returns the classification of err, with err's own text. An error that has no
// classification is Transient.
func AsFailure(err error) *Failure {
	f, ok := errors.AsType[*Failure](err)
	switch {
	case !ok:
		return &Failure{Err: err}
	case f == nil: // a mistake of the deliverer
		return &Failure{Err: errors.New("failed without saying why")}
	}
	if error(f) == err { //nolint:errorlint // identity is meant: nothing was wrapped around it
		return f
	}
	wrapped := *f
	wrapped.Err = err
	return &wrapped
}
