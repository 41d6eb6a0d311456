package wire

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-mq/holdfast"
)

// Where messages are posted (OI-11), below the prefix of a node or proxy. A v2 signature covers
// both strings, so it is worthless elsewhere.
const (
	Method      = "POST"
	ReceivePath = "/_rf/receive"
)

const (
	// Version is the protocol version that Encode writes. Decode accepts 2.x.
	Version = "2.0"
	// Overhead is the most that an envelope adds to its payload, in bytes: all fields at their
	// limits, each byte escaped.
	Overhead = 64 << 10
)

// Envelope is a message in the form of the wire (OI-08). Its Message has no Destination: only the
// sender needs it. The payload shares memory with the decoded bytes.
type Envelope struct {
	Message   holdfast.Message
	MessageID string // as received; Message.ID is its canonical form
	Version   string // rf-version; empty: absent
	Timestamp string // rf-timestamp, when this attempt was signed; not checked by Decode
	KeyID     string // rf-key
	To        string // rf-to; empty: absent
	Signature string // rf-hmac; empty: unsigned

	kind    string   // messageType as received
	headers []Header // all but rf-hmac, sorted by name; v2 covers them
}

// Seal says how an envelope is stamped and signed.
type Seal struct {
	Secret *Secret   // nil: unsigned
	V1     bool      // sign in the form of OI-09, for peers that know no other
	Path   string    // zero: ReceivePath
	Now    time.Time // the sender's clock; covered by v2
	To     string    // the receiver's name, covered by v2; empty: none
}

// Encode appends the envelope of one attempt of m to dst. An error is a Failure that parks the
// message: its payload is not JSON, a header uses our prefix, or a field is invalid.
func Encode(dst []byte, m *holdfast.Message, s Seal) ([]byte, error) {
	e, err := newEnvelope(m, s)
	if err != nil {
		return nil, err
	}
	if s.Secret != nil {
		e.sign(s)
	}
	return e.appendTo(dst)
}

func newEnvelope(m *holdfast.Message, s Seal) (Envelope, error) {
	payload, err := TrimPayload(m.Payload)
	if err != nil {
		return Envelope{}, err
	}
	for name := range m.Headers {
		if reserved(name) {
			return Envelope{}, &holdfast.Failure{
				Outcome: holdfast.Permanent, Code: CodeReserved, Reason: holdfast.ReasonUndecodable,
				Err: fmt.Errorf("encode envelope: header %q: names that start with rf- belong to the protocol", clip(name)),
			}
		}
	}
	e := Envelope{Message: *m}
	if err := e.check(); err != nil {
		return Envelope{}, &holdfast.Failure{
			Outcome: holdfast.Permanent, Code: CodeInvalid, Reason: holdfast.ReasonUndecodable,
			Err: fmt.Errorf("encode envelope: %w", err),
		}
	}
	e.Message.Payload = payload
	e.MessageID = string(e.Message.ID)
	e.kind = string(e.Message.Kind)
	e.headers = headersOf(&e.Message, s)
	return e, nil
}

func (e *Envelope) appendTo(dst []byte) ([]byte, error) {
	m := &e.Message
	w := writer{dst: dst}
	w.raw(`{"messageId":`).quote(e.MessageID)
	if m.CorrelationID == "" {
		w.raw(`,"correlationId":null`)
	} else {
		w.raw(`,"correlationId":`).quote(m.CorrelationID)
	}
	w.raw(`,"sourceServiceId":`).quote(m.Source)
	w.raw(`,"messageType":`).quote(e.kind)
	w.raw(`,"endpoint":`).quote(m.Endpoint)
	w.raw(`,"payload":`)
	w.dst = append(w.dst, m.Payload...)
	w.raw(`,"headers":{`)
	for i, h := range e.headers {
		if i > 0 {
			w.raw(`,`)
		}
		w.quote(h.Name).raw(`:`).quote(h.Value)
	}
	if e.Signature != "" {
		w.raw(`,"` + HeaderHMAC + `":`).quote(e.Signature)
	}
	w.raw(`}}`)
	return w.dst, w.err
}

// writer appends JSON text and keeps the first error.
type writer struct {
	dst []byte
	err error
}

func (w *writer) raw(text string) *writer {
	w.dst = append(w.dst, text...)
	return w
}

func (w *writer) quote(s string) *writer {
	dst, err := jsontext.AppendQuote(w.dst, s)
	if err != nil && w.err == nil {
		w.err = &holdfast.Failure{
			Outcome: holdfast.Permanent, Code: CodeInvalid, Reason: holdfast.ReasonUndecodable,
			Err: fmt.Errorf("encode envelope: text %q is not UTF-8", clip(s)),
		}
	}
	w.dst = dst
	return w
}
