package wire

import (
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/shown"
)

const (
	maxErrorText  = 300 // bytes of a peer's error text that operators see
	maxCodeLen    = 64
	maxRetryAfter = 24 * time.Hour
)

// replyFields are the members of a reply.
type replyFields struct {
	id, text, outcome, code, reason, encoding span
	payload                                   []byte
	ack, duplicate, maybe                     bool
	retryAfter                                time.Duration
	seen                                      uint
}

const (
	replyID = 1 << iota
	replyAck
	replyDuplicate
	replyPayload
	replyEncoding
	replyError
	replyOutcome
	replyCode
	replyReason
	replyRetryAfter
	replyMaybe
)

// DecodeReply reads one reply. If "acknowledged" is missing it returns an error: then no receiver
// has answered. It shortens the peer's texts to what may be shown. The response shares memory with
// data.
func (d *Decoder) DecodeReply(data []byte) (Reply, error) {
	var f replyFields
	err := d.open(data)
	if err == nil {
		err = d.object(func(name []byte) error { return d.replyField(&f, name) })
	}
	if err == nil {
		err = d.end()
	}
	all := string(d.text)
	d.close()
	if err == nil && f.seen&replyAck == 0 {
		err = errors.New("acknowledged is missing")
	}
	if err != nil {
		return Reply{}, fmt.Errorf("decode reply: %w", err)
	}
	of := func(s span) string { return all[s.from:s.to] }
	r := Reply{
		MessageID: of(f.id), Acknowledged: f.ack, Duplicate: f.duplicate, Error: shown.Line(of(f.text), maxErrorText),
		Outcome: of(f.outcome), Code: of(f.code), Reason: knownReason(of(f.reason)),
		RetryAfter: f.retryAfter, MaybeDelivered: f.maybe,
	}
	if !isCode(r.Code) {
		r.Code = ""
	}
	if r.Response, err = response(f.payload, of(f.encoding)); err != nil {
		return Reply{}, fmt.Errorf("decode reply: %w", err)
	}
	return r, nil
}

func (d *Decoder) replyField(f *replyFields, name []byte) error {
	var err error
	switch string(name) {
	case "messageId":
		f.id, err = d.once(&f.seen, replyID, "messageId", true)
	case "error":
		f.text, err = d.once(&f.seen, replyError, "error", true)
	case "outcome":
		f.outcome, err = d.once(&f.seen, replyOutcome, "outcome", true)
	case "code":
		f.code, err = d.once(&f.seen, replyCode, "code", true)
	case "reason":
		f.reason, err = d.once(&f.seen, replyReason, "reason", true)
	case "payloadEncoding":
		f.encoding, err = d.once(&f.seen, replyEncoding, "payloadEncoding", true)
	case "acknowledged":
		f.ack, err = d.boolean(&f.seen, replyAck, "acknowledged")
	case "duplicateDetected":
		f.duplicate, err = d.boolean(&f.seen, replyDuplicate, "duplicateDetected")
	case "maybeDelivered":
		f.maybe, err = d.boolean(&f.seen, replyMaybe, "maybeDelivered")
	case "payload":
		if f.seen&replyPayload != 0 {
			return errors.New("payload stands twice")
		}
		f.seen |= replyPayload
		f.payload, err = d.value()
	case "retryAfterMs":
		f.retryAfter, err = d.wait(&f.seen)
	default:
		err = d.unknown(name)
	}
	return err
}

func (d *Decoder) boolean(seen *uint, bit uint, name string) (bool, error) {
	if *seen&bit != 0 {
		return false, fmt.Errorf("%s stands twice", name)
	}
	*seen |= bit
	raw, err := d.json.ReadValue()
	if err != nil {
		return false, syntaxFault(err)
	}
	switch string(raw) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("%s must be true or false", name)
}

// wait reads retryAfterMs. A number that makes no sense means no wait: it does not invalidate the
// reply.
func (d *Decoder) wait(seen *uint) (time.Duration, error) {
	if *seen&replyRetryAfter != 0 {
		return 0, errors.New("retryAfterMs stands twice")
	}
	*seen |= replyRetryAfter
	raw, err := d.json.ReadValue()
	if err != nil {
		return 0, syntaxFault(err)
	}
	ms, ok := digits([]byte(raw), int64(maxAge/time.Millisecond))
	if !ok {
		return 0, nil
	}
	return min(time.Duration(ms)*time.Millisecond, maxRetryAfter), nil
}

// response reverses Reply.appendResponse.
func response(payload []byte, encoding string) ([]byte, error) {
	switch encoding {
	case "":
		if string(payload) == "null" {
			return nil, nil
		}
		return payload, nil
	case encodingText, encodingBase64:
	default:
		return nil, fmt.Errorf("payloadEncoding %q is not known", clip(encoding))
	}
	if len(payload) == 0 || payload[0] != '"' {
		return nil, errors.New("payload must be a string where payloadEncoding is given")
	}
	text, err := jsontext.AppendUnquote(nil, payload)
	if err != nil {
		return nil, errors.New("payload holds a broken escape")
	}
	if encoding == encodingText {
		return text, nil
	}
	b, err := base64.StdEncoding.Strict().DecodeString(string(text))
	if err != nil {
		return nil, errors.New("payload is not base64")
	}
	return b, nil
}

// isCode reports whether s may become a metric label: short, with only lower-case letters, digits
// and underscores.
func isCode(s string) bool {
	if s == "" || len(s) > maxCodeLen {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

func knownReason(s string) holdfast.Reason {
	switch r := holdfast.Reason(s); r {
	case holdfast.ReasonPermanent, holdfast.ReasonConflict, holdfast.ReasonTooOld, holdfast.ReasonTooLarge,
		holdfast.ReasonUndecodable, holdfast.ReasonNoEndpoint:
		return r
	case holdfast.ReasonExhausted, holdfast.ReasonOperator, holdfast.ReasonRejected: // only the sender sets these
	}
	return ""
}
