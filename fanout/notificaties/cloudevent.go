package notificaties

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/fanout"
)

// member is one member of a CloudEvent.
type member struct {
	name  string
	value jsontext.Value // as it was sent
}

// cloudEvent is a CloudEvent with its members in the order in which they came.
type cloudEvent struct {
	members []member
	body    []byte // that is delivered

	id, source, kind, subject string
	at                        time.Time // zero: not given
}

// postCloudEvent stores a CloudEvent with a message for each abonnement that it is for.
func (s *Server) postCloudEvent(w http.ResponseWriter, r *http.Request) error {
	c, err := s.allowed(r, Publish)
	if err != nil {
		return err
	}
	text, leave, err := s.text(r, fanout.CloudEventJSON)
	if err != nil {
		return err
	}
	defer leave()
	e, err := readCloudEvent(text)
	if err != nil {
		return err
	}
	if err := s.publishCloudEvent(r.Context(), e.event(&c)); err != nil {
		return notPublished(err)
	}
	if takes := r.Header.Get("Accept"); !strings.Contains(takes, "application/json") || strings.Contains(takes, fanout.CloudEventJSON) {
		w.Header().Set("Content-Type", fanout.CloudEventJSON)
	}
	return write(w, http.StatusCreated, e.echo())
}

// publishCloudEvent publishes under the topic of CloudEvents, and makes it if it is not there.
func (s *Server) publishCloudEvent(ctx context.Context, e fanout.Event) error {
	_, err := s.Publisher.Publish(ctx, e)
	if !errors.Is(err, holdfast.ErrNotFound) {
		return err
	}
	t := fanout.Topic{Name: fanout.CloudEvents, Description: "CloudEvents of the Notificaties API"}
	if _, err := s.Book.Store().PutTopic(ctx, t, "system"); err != nil && !errors.Is(err, holdfast.ErrState) { // another call was faster
		return err
	}
	_, err = s.Publisher.Publish(ctx, e)
	return err
}

// Limits of a CloudEvent, in characters.
const (
	maxAttribute   = 255
	maxSpecVersion = 50
)

// readCloudEvent reads a CloudEvent in its JSON format. Names have the case of the standard.
func readCloudEvent(text []byte) (*cloudEvent, error) {
	e := &cloudEvent{body: text}
	all, err := e.read(text)
	if err != nil {
		return nil, err
	}
	f := &fields{all: all, faults: &[]InvalidParam{}}
	long := textRules{required: true, most: maxAttribute}
	e.id = e.text(f, "id", long)
	e.source = e.text(f, "source", long)
	if version := e.text(f, "specversion", textRules{required: true, most: maxSpecVersion}); version != "" && !isVersion(version) {
		f.fault("specversion", "invalid", "Schrijf een versie zoals 1.0.")
	}
	e.kind = e.text(f, "type", long)
	for _, name := range []string{"datacontenttype", "dataschema", "subject"} {
		value := e.text(f, name, textRules{blank: true, most: maxAttribute})
		if name == "subject" {
			e.subject = value
		}
	}
	if at, given := all["time"]; given && at != nil {
		said, _ := at.(string)
		var ok bool
		if e.at, ok = instant(strings.TrimSpace(said)); !ok {
			f.fault("time", "invalid", "Geen geldige datum en tijd: schrijf bijvoorbeeld 2025-01-31T12:00:00Z.")
		}
	}
	return e, f.err()
}

// read takes the text apart. It returns the values of all members that are scalars.
func (e *cloudEvent) read(text []byte) (map[string]any, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(text))
	if dec.PeekKind() != jsontext.KindBeginObject {
		if !jsontext.Value(text).IsValid() {
			return nil, parseError("het is onvolledig of geen JSON.")
		}
		return nil, invalid(InvalidParam{whole, "invalid", "Ongeldige data: er wordt een object verwacht."})
	}
	all := map[string]any{}
	_, err := dec.ReadToken()
	for err == nil && dec.PeekKind() != jsontext.KindEndObject {
		var name jsontext.Token
		if name, err = dec.ReadToken(); err != nil {
			break
		}
		m := member{name: name.String()}
		if m.value, err = dec.ReadValue(); err != nil {
			break
		}
		m.value = m.value.Clone()
		e.members = append(e.members, m)
		all[m.name] = scalarOf(m.value)
	}
	if err == nil {
		_, err = dec.ReadToken()
	}
	if err == nil {
		if _, end := dec.ReadToken(); !errors.Is(end, io.EOF) {
			err = errors.New("er staat meer achter de waarde")
		}
	}
	if err != nil {
		return nil, parseError(clip(err.Error()))
	}
	return all, nil
}

// scalarOf returns a text, a number, a truth value or nil for null; anything else as it stands.
func scalarOf(v jsontext.Value) any {
	if kind := v.Kind(); kind == jsontext.KindBeginObject || kind == jsontext.KindBeginArray {
		return v
	}
	var out any
	d := json.NewDecoder(bytes.NewReader(v))
	d.UseNumber()
	if d.Decode(&out) != nil {
		return v
	}
	return out
}

// text reads an attribute. What is not written as it is understood is corrected in the body.
func (e *cloudEvent) text(f *fields, name string, rules textRules) string {
	s, ok := f.text(name, rules)
	if given, is := f.all[name]; !ok || is && given == any(s) {
		return s
	}
	i := slices.IndexFunc(e.members, func(m member) bool { return m.name == name })
	if i < 0 {
		return s
	}
	e.members[i].value, _ = marshal(s) // cannot fail: it is a string
	e.body = joined(e.members)
	return s
}

func joined(list []member) []byte {
	b := []byte{'{'}
	for i, m := range list {
		if i > 0 {
			b = append(b, ',')
		}
		name, _ := marshal(m.name) // cannot fail: it is a string
		b = append(append(append(b, name...), ':'), m.value...)
	}
	return append(b, '}')
}

// isVersion reports whether a text begins with two numbers and a dot between.
func isVersion(s string) bool {
	const digits = "0123456789"
	rest := strings.TrimLeft(s, digits)
	return rest != s && len(rest) > 1 && rest[0] == '.' && strings.IndexByte(digits, rest[1]) >= 0
}

// known are the members that the standard names, in the order of answers.
func known() []string {
	return []string{"id", "source", "specversion", "type", "datacontenttype", "dataschema", "subject", "time", "data"}
}

// event returns what is stored of a CloudEvent. Texts beside the members that the standard names are its attributes.
func (e *cloudEvent) event(c *Client) fanout.Event {
	out := fanout.Event{
		ID: holdfast.ID(short(e.id)), Source: short(e.source), Topic: fanout.CloudEvents, Type: e.kind, Subject: e.subject, Time: e.at,
		Attributes: map[string]string{}, Data: e.body, ContentType: fanout.CloudEventJSON, Actor: c.Actor(),
	}
	for _, m := range e.members {
		if s, ok := scalarOf(m.value).(string); ok && len(s) <= maxValue && !slices.Contains(known(), m.name) {
			out.Attributes[m.name] = s
		}
	}
	return out
}

// echo returns the CloudEvent as answers have it: what is known comes first, and an absent time and absent data are null.
func (e *cloudEvent) echo() jsontext.Value {
	var first, rest []member
	for _, name := range known() {
		i := slices.IndexFunc(e.members, func(m member) bool { return m.name == name })
		value := jsontext.Value("null")
		switch {
		case name == "time" && !e.at.IsZero():
			value, _ = marshal(echoed(e.at)) // cannot fail: it is a string
		case i >= 0:
			value = e.members[i].value
		case name != "time" && name != "data":
			continue
		}
		first = append(first, member{name, value})
	}
	for _, m := range e.members {
		if !slices.Contains(known(), m.name) {
			rest = append(rest, m)
		}
	}
	return joined(slices.Concat(first, rest))
}
