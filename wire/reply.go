package wire

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/shown"
)

// Reply answers one message. It has the fields of OI-20, and ours that classify the outcome.
type Reply struct {
	MessageID    string // as in the envelope; only in a batch
	Acknowledged bool
	Duplicate    bool
	Response     []byte // nil: none
	Error        string // for people; nothing internal to the receiver

	// Our fields. A peer that knows only OI-20 leaves them out.
	Outcome        string // name of a holdfast.Outcome; empty: the peer does not classify
	Code           string
	Reason         holdfast.Reason
	RetryAfter     time.Duration
	MaybeDelivered bool
}

// Encodings of a Response that is not JSON.
const (
	encodingText   = "text"   // a JSON string of the text
	encodingBase64 = "base64" // a JSON string of its standard base64
)

// Codes that ReplyTo gives to errors without a code.
const (
	CodeConflict   = "conflict"
	CodeTooOld     = "too_old"
	CodeNoEndpoint = "no_endpoint"
	CodeTooLarge   = "too_large"
	CodeDiskFull   = "disk_full"
	CodeStopping   = "stopping"
	CodeTimeout    = "timeout"
	CodeHandler    = "handler_error"

	codePanic = "panic" // its text comes from the program, not the handler
)

// ReplyTo turns the result of a Receiver into a reply. For an error it gives the class, the code
// and the reason. It gives the text, bounded, only if a Failure carries it; the text of any other
// error may hold internals (OI-20) and is left out. If a Failure's error has a method Public, its
// result is the text.
func ReplyTo(receipt holdfast.Receipt, err error) Reply {
	if err == nil {
		return Reply{
			Acknowledged: true, Duplicate: receipt.Duplicate, Response: receipt.Response,
			Outcome: holdfast.Succeeded.String(),
		}
	}
	f := Classify(err)
	return Reply{
		Error: publicText(err, f), Outcome: f.Outcome.String(), Code: f.Code, Reason: f.Reason,
		RetryAfter: max(f.RetryAfter, 0), MaybeDelivered: f.MaybeDelivered,
	}
}

// Classify returns the Failure of a Receiver's error. The library's own errors keep their meaning.
// Any other error is a handler's, and transient.
func Classify(err error) *holdfast.Failure {
	c := *holdfast.AsFailure(holdfast.ReceiveFailure(err))
	if c.Outcome > holdfast.NotStarted {
		c.Outcome = holdfast.Transient // an error is never a success
	}
	if c.Outcome != holdfast.Permanent {
		c.Reason = ""
	} else if c.Reason == "" {
		c.Reason = holdfast.ReasonPermanent
	}
	if !isCode(c.Code) {
		c.Code = defaultCode(&c)
	}
	return &c
}

func defaultCode(f *holdfast.Failure) string {
	if f.Reason != "" {
		return string(f.Reason)
	}
	return f.Outcome.String()
}

// ownText returns the text of an explicit Failure if its reason does not say it all. A message that
// was not begun has no text.
func ownText(err error, f *holdfast.Failure) string {
	own, ok := errors.AsType[*holdfast.Failure](err)
	if !ok || own == nil || own.Err == nil || f.Code == codePanic || f.Outcome == holdfast.NotStarted || f.Reason != "" && f.Reason != holdfast.ReasonPermanent {
		return ""
	}
	if p, ok := own.Err.(interface{ Public() string }); ok {
		return p.Public()
	}
	return own.Err.Error()
}

func publicText(err error, f *holdfast.Failure) string {
	if text := ownText(err, f); text != "" {
		return shown.Line(text, maxErrorText)
	}
	switch f.Reason {
	case holdfast.ReasonConflict:
		return holdfast.ErrConflict.Error()
	case holdfast.ReasonTooOld:
		return holdfast.ErrTooOld.Error()
	case holdfast.ReasonNoEndpoint:
		return "no such endpoint here"
	case holdfast.ReasonTooLarge:
		return "larger than this receiver takes"
	case holdfast.ReasonUndecodable:
		return "not understood"
	case holdfast.ReasonPermanent, holdfast.ReasonExhausted, holdfast.ReasonOperator, holdfast.ReasonRejected:
	}
	switch f.Outcome {
	case holdfast.Permanent:
		return "refused for good"
	case holdfast.NotStarted:
		return "not begun"
	case holdfast.Unreachable:
		return "what should process it is not there"
	case holdfast.LaneFault:
		return "nothing is taken until somebody has repaired the settings"
	case holdfast.Transient, holdfast.Succeeded:
	}
	return "not processed; try again"
}

// AppendTo appends the reply as JSON.
func (r *Reply) AppendTo(dst []byte) []byte {
	w := writer{dst: dst}
	w.raw(`{`)
	if r.MessageID != "" {
		w.raw(`"messageId":`).quote(r.MessageID).raw(`,`)
	}
	w.raw(`"acknowledged":`).boolean(r.Acknowledged)
	w.raw(`,"duplicateDetected":`).boolean(r.Duplicate)
	r.appendResponse(&w)
	w.optional("error", r.Error)
	w.optional("outcome", r.Outcome)
	w.optional("code", r.Code)
	w.optional("reason", string(r.Reason))
	if r.RetryAfter > 0 {
		w.raw(`,"retryAfterMs":`)
		w.dst = strconv.AppendInt(w.dst, millis(r.RetryAfter), 10)
	}
	if r.MaybeDelivered {
		w.raw(`,"maybeDelivered":true`)
	}
	w.raw(`}`)
	return w.dst
}

// appendResponse inserts JSON without the whitespace around it. Other bytes, and null, become a
// string with an encoding, so that they survive; null itself means that there is no response.
func (r *Reply) appendResponse(w *writer) {
	if len(r.Response) == 0 {
		return
	}
	if b, err := TrimPayload(r.Response); err == nil && string(b) != "null" {
		w.raw(`,"payload":`)
		w.dst = append(w.dst, b...)
		return
	}
	if utf8.Valid(r.Response) {
		w.raw(`,"payload":`).quote(string(r.Response)).raw(`,"payloadEncoding":"` + encodingText + `"`)
		return
	}
	w.raw(`,"payload":"`)
	w.dst = base64.StdEncoding.AppendEncode(w.dst, r.Response)
	w.raw(`","payloadEncoding":"` + encodingBase64 + `"`)
}

func (w *writer) boolean(b bool) { w.dst = strconv.AppendBool(w.dst, b) }

func (w *writer) optional(name, value string) {
	if value != "" {
		w.raw(`,"` + name + `":`).quote(value)
	}
}

// Result returns what a reply means to the sender. An ack or a duplicate is success (OI-04); a
// classified refusal is its Failure. It returns false if the reply is neither, so that the
// transport must judge by its own status.
func (r *Reply) Result(id holdfast.ID) (holdfast.Result, bool) {
	if r.Acknowledged || r.Duplicate {
		return holdfast.Result{Receipt: holdfast.Receipt{
			ID: id, State: holdfast.Delivered, Duplicate: r.Duplicate, Response: r.Response,
		}}, true
	}
	outcome, ok := refusal(r.Outcome)
	if !ok {
		return holdfast.Result{}, false
	}
	text := "the receiver gave no reason"
	if r.Error != "" {
		text = "the receiver says: " + r.Error
	}
	return holdfast.Result{Receipt: holdfast.Receipt{ID: id}, Err: &holdfast.Failure{
		Outcome: outcome, Code: r.Code, Reason: r.Reason, RetryAfter: r.RetryAfter, MaybeDelivered: r.MaybeDelivered,
		Err: fmt.Errorf("deliver message %s: %s", id, text),
	}}, true
}

func refusal(name string) (holdfast.Outcome, bool) {
	for o := holdfast.Transient; o <= holdfast.NotStarted; o++ {
		if o.String() == name {
			return o, true
		}
	}
	return holdfast.Transient, false
}
