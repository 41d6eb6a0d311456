package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-mq/holdfast"
)

// maxMembers limits the fields of an envelope or a reply, unknown ones included.
const maxMembers = 64

// Decode reads one envelope. See Decoder.
func Decode(data []byte) (Envelope, error) {
	var d Decoder
	return d.Decode(data)
}

// Decoder reads envelopes and replies and keeps its working memory between
// them. The zero value is ready. It must not be used concurrently.
type Decoder struct {
	json   jsontext.Decoder
	buf    bytes.Buffer
	text   []byte // every string of the envelope, unquoted, concatenated
	names  []span // of unknown fields
	header []headerSpan
}

// span is a piece of Decoder.text.
type span struct{ from, to int }

type headerSpan struct {
	known       string // a constant; empty: name counts
	name, value span
}

// fields are the members of an envelope.
type fields struct {
	id, correlation, source, kind, endpoint span
	payload                                 []byte
	seen                                    uint
}

const (
	sawID = 1 << iota
	sawCorrelation
	sawSource
	sawKind
	sawEndpoint
	sawPayload
	sawHeaders
)

// Decode reads one envelope and checks everything but its signature. An envelope is one JSON object
// in UTF-8, at most MaxDepth deep, without duplicate names, whose fields obey holdfast.Normalize.
// Unknown fields are skipped; the signature does not cover them. An absent payload is null, an
// absent messageType is Signal. The envelope shares memory with data.
//
// The error is a Failure that parks the message, or a lane fault if the peer speaks another
// version. MessageID may be set even then, so that a reply can name the message.
func (d *Decoder) Decode(data []byte) (Envelope, error) {
	var f fields
	err := d.open(data)
	if err == nil {
		err = d.object(func(name []byte) error { return d.envelopeField(&f, name) })
	}
	if err == nil {
		err = d.end()
	}
	e, fieldErr := d.envelope(&f)
	if err == nil {
		err = fieldErr
	}
	d.close()
	if err == nil && e.Version != "" && !version2(e.Version) {
		return Envelope{MessageID: e.MessageID}, &holdfast.Failure{
			Outcome: holdfast.LaneFault, Code: CodeVersion,
			Err: fmt.Errorf("decode envelope: version %q; this node speaks %s", clip(e.Version), Version),
		}
	}
	if err != nil {
		return Envelope{MessageID: e.MessageID}, &holdfast.Failure{
			Outcome: holdfast.Permanent, Code: CodeEnvelope, Reason: holdfast.ReasonUndecodable,
			Err: fmt.Errorf("decode envelope: %w", err),
		}
	}
	return e, nil
}

func version2(v string) bool { return v == "2" || len(v) >= 2 && v[:2] == "2." }

// envelopeField reads the value of one member.
func (d *Decoder) envelopeField(f *fields, name []byte) error {
	var err error
	switch string(name) {
	case "messageId":
		f.id, err = d.once(&f.seen, sawID, "messageId", false)
	case "correlationId":
		f.correlation, err = d.once(&f.seen, sawCorrelation, "correlationId", true)
	case "sourceServiceId":
		f.source, err = d.once(&f.seen, sawSource, "sourceServiceId", false)
	case "messageType":
		f.kind, err = d.once(&f.seen, sawKind, "messageType", true)
	case "endpoint":
		f.endpoint, err = d.once(&f.seen, sawEndpoint, "endpoint", false)
	case "payload":
		if f.seen&sawPayload != 0 {
			return errors.New("payload stands twice")
		}
		f.seen |= sawPayload
		f.payload, err = d.value()
	case "headers":
		if f.seen&sawHeaders != 0 {
			return errors.New("headers stand twice")
		}
		f.seen |= sawHeaders
		if d.json.PeekKind() == 'n' {
			return d.json.SkipValue()
		}
		err = d.object(d.headerField)
	default:
		err = d.unknown(name)
	}
	return err
}

func (d *Decoder) headerField(name []byte) error {
	if len(d.header) == holdfast.MaxHeaders+maxReserved {
		return fmt.Errorf("more than %d headers", holdfast.MaxHeaders+maxReserved)
	}
	h := headerSpan{}
	if known, ok := knownHeader(name); ok {
		h.known = known
	} else {
		h.name = d.keep(name)
	}
	var err error
	h.value, err = d.str("headers", false)
	d.header = append(d.header, h)
	return err
}

// envelope builds the envelope from what has been read so far.
func (d *Decoder) envelope(f *fields) (Envelope, error) {
	all := string(d.text) // one allocation for all strings
	of := func(s span) string { return all[s.from:s.to] }
	e := Envelope{MessageID: of(f.id), kind: of(f.kind)}
	e.Message = holdfast.Message{
		ID: holdfast.ID(e.MessageID), Source: of(f.source), Endpoint: of(f.endpoint),
		Kind: holdfast.Kind(e.kind), CorrelationID: of(f.correlation), Payload: f.payload,
		Attempt: holdfast.Attempt{RetryFor: -1},
	}
	if f.seen&sawPayload == 0 {
		e.Message.Payload = []byte("null")
	}
	e.headers = make([]Header, 0, len(d.header))
	for _, span := range d.header {
		h := Header{span.known, of(span.value)}
		if h.Name == "" {
			h.Name = of(span.name)
		}
		if err := e.take(h); err != nil {
			return e, err
		}
		if h.Name != HeaderHMAC {
			e.headers = append(e.headers, h)
		}
	}
	return e, d.finish(&e, f)
}

// finish checks the envelope against the rules.
func (d *Decoder) finish(e *Envelope, f *fields) error {
	sortHeaders(e.headers)
	signatures := len(d.header) - len(e.headers)
	for i := 1; i < len(e.headers); i++ {
		if e.headers[i].Name == e.headers[i-1].Name {
			return fmt.Errorf("header %q stands twice", clip(e.headers[i].Name))
		}
	}
	switch {
	case signatures > 1:
		return errors.New("header rf-hmac stands twice")
	case f.seen&sawID == 0:
		return errors.New("messageId is missing")
	case f.seen&sawSource == 0:
		return errors.New("sourceServiceId is missing")
	case f.seen&sawEndpoint == 0:
		return errors.New("endpoint is missing")
	}
	if a := &e.Message.Attempt; a.Number == 0 && a.RetryFor == 0 {
		a.RetryFor = -1 // no dispatcher has numbered the message, so its end is unknown
	}
	return e.check()
}

func (d *Decoder) open(data []byte) error {
	d.text, d.names, d.header = d.text[:0], d.names[:0], d.header[:0]
	if !utf8.Valid(data) {
		return errors.New("not UTF-8")
	}
	if deeper(data, MaxDepth) {
		return fmt.Errorf("nested deeper than %d levels", MaxDepth)
	}
	// A bytes.Buffer is read in place: values share memory with data.
	d.buf = *bytes.NewBuffer(data)
	d.json.Reset(&d.buf, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return nil
}

// close releases the data, and memory that only a hostile envelope needs.
func (d *Decoder) close() {
	d.buf = bytes.Buffer{}
	d.json.Reset(&d.buf)
	if cap(d.text) > Overhead {
		d.text = nil
	}
}

// object reads an object. It calls field for each name, to read its value. The name is valid only
// during the call.
func (d *Decoder) object(field func(name []byte) error) error {
	if d.json.PeekKind() != '{' {
		if _, err := d.json.ReadToken(); err != nil {
			return syntaxFault(err)
		}
		return errors.New("not a JSON object where one must be")
	}
	if _, err := d.json.ReadToken(); err != nil {
		return syntaxFault(err)
	}
	for members := 0; d.json.PeekKind() != '}'; members++ {
		if members == maxMembers+maxReserved {
			return fmt.Errorf("more than %d members in an object", maxMembers+maxReserved)
		}
		raw, err := d.json.ReadValue()
		if err != nil {
			return syntaxFault(err)
		}
		// Names without escapes are used in place; only hostile names have escapes.
		name := []byte(raw[1 : len(raw)-1])
		if bytes.IndexByte(name, '\\') >= 0 {
			if name, err = jsontext.AppendUnquote(nil, raw); err != nil {
				return errors.New("a name is not a JSON string in UTF-8")
			}
		}
		if err := field(name); err != nil {
			return err
		}
	}
	_, err := d.json.ReadToken()
	if err != nil {
		return syntaxFault(err)
	}
	return nil
}

// once reads a string field that may appear only once.
func (d *Decoder) once(seen *uint, bit uint, name string, nullable bool) (span, error) {
	if *seen&bit != 0 {
		return span{}, fmt.Errorf("%s stands twice", name)
	}
	*seen |= bit
	return d.str(name, nullable)
}

// str reads a string into d.text, or null if nullable.
func (d *Decoder) str(name string, nullable bool) (span, error) {
	raw, err := d.json.ReadValue()
	if err != nil {
		return span{}, syntaxFault(err)
	}
	switch {
	case raw[0] == '"':
	case raw[0] == 'n' && nullable:
		return span{}, nil
	default:
		return span{}, fmt.Errorf("%s must hold a string", name)
	}
	from := len(d.text)
	if bytes.IndexByte(raw, '\\') < 0 {
		d.text = append(d.text, raw[1:len(raw)-1]...)
	} else if d.text, err = jsontext.AppendUnquote(d.text, raw); err != nil {
		d.text = d.text[:from]
		return span{}, fmt.Errorf("%s holds a broken escape", name)
	}
	return span{from, len(d.text)}, nil
}

func (d *Decoder) keep(b []byte) span {
	from := len(d.text)
	d.text = append(d.text, b...)
	return span{from, len(d.text)}
}

// value reads any value and returns its bytes, with the capacity cut to their length.
func (d *Decoder) value() ([]byte, error) {
	raw, err := d.json.ReadValue()
	if err != nil {
		return nil, syntaxFault(err)
	}
	return slices.Clip([]byte(raw)), nil
}

// unknown skips an unknown field. It refuses a duplicate.
func (d *Decoder) unknown(name []byte) error {
	for _, s := range d.names {
		if bytes.Equal(d.text[s.from:s.to], name) {
			return errors.New("a name stands twice")
		}
	}
	d.names = append(d.names, d.keep(name))
	if err := d.json.SkipValue(); err != nil {
		return syntaxFault(err)
	}
	return nil
}

// end checks that nothing follows the value.
func (d *Decoder) end() error {
	if _, err := d.json.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the object")
	}
	return nil
}
