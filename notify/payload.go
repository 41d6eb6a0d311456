package notify

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/holdfast-mq/holdfast"
)

// Central is the destination of notifications at a site.
const Central = "central"

// Limits of a notification, in bytes.
const (
	MaxSubject = 1000
	MaxType    = 128
	// MaxPayload is the limit of a whole notification, as it is stored and sent.
	MaxPayload = 1 << 20
)

// payload is what is sent. The origin is in the headers, and the id is the message's.
type payload struct {
	Type    string          `json:"type,omitempty"`
	List    string          `json:"list"`
	Subject string          `json:"subject"`
	Body    string          `json:"body"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// UnmarshalJSONFrom accepts each name only in its exact case and only once: of two, another program
// that reads the same bytes might take the other. The content of data is up to the author (F1-20).
func (p *payload) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	begin, err := d.ReadToken()
	if err != nil {
		return err
	}
	switch is := begin.Kind(); {
	case is == jsontext.KindNull:
		return nil // the required fields are missing
	case is == jsontext.KindBeginArray:
		return errors.New("it is an array, not an object")
	case is != jsontext.KindBeginObject:
		return errors.New("it is not an object")
	}
	var seen [5]bool
	for d.PeekKind() != jsontext.KindEndObject {
		token, err := d.ReadToken()
		if err != nil {
			return err
		}
		name := token.String()
		i, text := p.field(name)
		switch {
		case i < 0:
			return fmt.Errorf("unknown field %q", fmt.Sprintf("%.80s", name))
		case seen[i]:
			return fmt.Errorf("%s stands twice", name)
		case text != nil:
			err = jsonv2.UnmarshalDecode(d, text)
		default:
			var raw jsontext.Value
			raw, err = d.ReadValue()
			p.Data = bytes.Clone(raw)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		seen[i] = true
	}
	_, err = d.ReadToken()
	return err
}

// field returns the number of a name, and where to store its text if it has one.
func (p *payload) field(name string) (int, *string) {
	switch name {
	case "type":
		return 0, &p.Type
	case "list":
		return 1, &p.List
	case "subject":
		return 2, &p.Subject
	case "body":
		return 3, &p.Body
	case "data":
		return 4, nil
	}
	return -1, nil
}

// Encode makes the payload of a notification's message. Equal notifications have equal payloads.
// The error holds a *FieldError for each fault.
func Encode(n Notification) ([]byte, error) {
	p := payload{Type: n.Type, List: n.List, Subject: n.Subject, Body: n.Body, Data: n.Data}
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", holdfast.ErrInvalid, err)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(p); err != nil {
		return nil, fmt.Errorf("encode notification: %w", err)
	}
	out := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if len(out) > MaxPayload {
		return nil, fmt.Errorf("%w: %w", holdfast.ErrInvalid, &holdfast.FieldError{
			Field: "body", Value: fmt.Sprint(len(out), " bytes"), Problem: fmt.Sprintf("is too long; a notification may have %d bytes in all", MaxPayload),
		})
	}
	return out, nil
}

// Decode reads the notification of a message, which another program may have written. It refuses
// unknown fields. The error says why the message can never be delivered (SF-20). Id and site are
// the message's.
func Decode(m holdfast.Message) (Notification, error) {
	var p payload
	if err := jsonv2.Unmarshal(m.Payload, &p, jsonv1.DefaultOptionsV1()); err != nil {
		return Notification{}, fmt.Errorf("%w: decode notification: %w", holdfast.ErrInvalid, err)
	}
	if err := p.check(); err != nil {
		return Notification{}, fmt.Errorf("%w: decode notification: %w", holdfast.ErrInvalid, err)
	}
	n := Notification{ID: m.ID, Type: p.Type, List: p.List, Subject: p.Subject, Body: p.Body, Data: p.Data, Origin: OriginOf(m.Headers)}
	n.Origin.Site = m.Source
	if n.Origin.Site == "" {
		n.Origin.Site = UnknownSite
	}
	return n, nil
}

// Text returns what people read from the payload of a notification's message; stores keep it once.
// It is empty if the payload is not a notification's.
func Text(payload []byte) (body string, data json.RawMessage) {
	n, err := Decode(holdfast.Message{Payload: payload})
	if err != nil {
		return "", nil
	}
	return n.Body, n.Data
}

// check cleans the texts and reports all faults.
func (p *payload) check() error {
	var faults []error
	bad := func(field, value, problem string) {
		faults = append(faults, &holdfast.FieldError{Field: field, Value: value, Problem: problem})
	}
	if err := checkLine("type", p.Type, MaxType); err != nil {
		faults = append(faults, err)
	}
	if err := CheckName("list", p.List); err != nil {
		faults = append(faults, err)
	}
	for _, text := range []struct{ field, value string }{{"subject", p.Subject}, {"body", p.Body}} {
		if !utf8.ValidString(text.value) {
			bad(text.field, "", "is not UTF-8")
		}
	}
	p.Subject = line(p.Subject)
	p.Body = plain(p.Body)
	switch {
	case len(p.Subject) > MaxSubject:
		bad("subject", fmt.Sprint(len(p.Subject), " bytes"), fmt.Sprintf("is too long; at most %d bytes are sent", MaxSubject))
	case p.Subject == "" && strings.TrimSpace(p.Body) == "":
		bad("subject", "", "is empty, and so is the body; at least one must be set")
	}
	switch {
	case len(p.Data) == 0, string(p.Data) == "null":
		p.Data = nil
	case !json.Valid(p.Data):
		bad("data", fmt.Sprintf("%.80s", p.Data), "is not JSON")
	}
	return errors.Join(faults...)
}

// line returns a text on one line. Each run of line breaks and other control characters becomes one
// space.
func line(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || isControl(r) || r == '\u0085' || r == '\u2028' || r == '\u2029' }), " ")
}

// plain returns a text of several lines without characters that a terminal or a mail would act on,
// or that PostgreSQL cannot keep.
func plain(s string) string {
	if isPlain(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if isControl(r) && r != '\n' && r != '\t' {
			return ' '
		}
		return r
	}, strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s))
}

// isPlain is a quick check for most texts. It may return false for a plain text: the byte 0xEF
// begins U+FFFD and much that is rare.
func isPlain(s string) bool {
	for i := range len(s) {
		if b := s[i]; b < ' ' && b != '\n' && b != '\t' || b == 0x7f || b == 0xEF {
			return false
		}
	}
	return utf8.ValidString(s)
}
