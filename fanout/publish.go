package fanout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/fanout/filter"
	"github.com/holdfast-mq/holdfast/rows"
)

// Publisher takes events. It may be used concurrently.
type Publisher struct {
	Bundles holdfast.Bundler
	Book    *Book
	Source  string // of events that name none
}

// Published is what became of an event.
type Published struct {
	ID        holdfast.ID
	Source    string
	Matched   int  // subscriptions that it is for
	Duplicate bool // it was stored before
}

// Publish stores an event with a message for each subscription that it is for. It returns when that is on
// disk, and calls nobody. An event that is known by its source and id with the same content is answered
// as it was at first, as long as it is kept; with other content the error is ErrConflict. ErrNotFound:
// there is no such topic. ErrInvalid wraps each fault as a *holdfast.FieldError. What Suits and Fits say is returned as
// it is. A known event is answered without them, and without its topic.
func (p *Publisher) Publish(ctx context.Context, e Event) (Published, error) {
	named := e.ID != ""
	if err := e.normalize(p.Source); err != nil {
		return Published{}, fmt.Errorf("publish event: %w", err)
	}
	hash, timeless := e.hash(), e.Time.IsZero()
	if timeless {
		e.Time = time.Now()
	}
	e.Time = e.Time.UTC().Truncate(time.Microsecond)
	to, version, err := p.match(ctx, &e)
	if err != nil && named {
		// A repeat is answered as at first, whatever has come to ask for such events since, and whatever became of the topic.
		s, findErr := p.repeat(ctx, &e, hash, timeless)
		if findErr == nil {
			return s, nil
		} else if !errors.Is(findErr, holdfast.ErrNotFound) {
			err = findErr
		}
	}
	var s Published
	if err == nil {
		s, err = p.publish(ctx, &e, hash, to, version)
	}
	if err != nil {
		return Published{}, fmt.Errorf("publish event %s: %w", e.ID, err)
	}
	return s, nil
}

// match returns the subscriptions that an event is for, or why it is refused.
func (p *Publisher) match(ctx context.Context, e *Event) (to []match, version int64, err error) {
	t, found, err := p.Book.Topic(ctx, e.Topic)
	switch {
	case err != nil:
		return nil, 0, err
	case !found:
		return nil, 0, fmt.Errorf("there is no topic %s: %w", e.Topic, holdfast.ErrNotFound)
	case e.Suits != nil:
		if err := e.Suits(&t); err != nil {
			return nil, 0, err
		}
	}
	return p.Book.match(ctx, e.asked(), e.Fits)
}

func (p *Publisher) publish(ctx context.Context, e *Event, hash [32]byte, to []match, version int64) (done Published, err error) {
	b, err := e.bundle(hash, to, version)
	if err != nil {
		return done, err
	}
	results, err := p.Bundles.Bundle(ctx, b)
	if err == nil {
		err = results[0].Err
	}
	if err != nil {
		return done, err
	}
	done = Published{ID: results[0].Receipt.ID, Source: e.Source, Matched: len(to), Duplicate: results[0].Receipt.Duplicate}
	if !done.Duplicate {
		return done, nil
	}
	known, err := p.Book.store.EventsOf(ctx, done.ID)
	for i := range known {
		if known[i].Source == e.Source {
			done.Matched = known[i].Matched
		}
	}
	return done, err
}

// repeat answers an event that is known. ErrNotFound: it is not.
func (p *Publisher) repeat(ctx context.Context, e *Event, hash [32]byte, timeless bool) (Published, error) {
	all, err := p.Book.store.EventsOf(ctx, e.ID)
	if err != nil {
		return Published{}, err
	}
	for i := range all {
		old := &all[i]
		if old.Source != e.Source {
			continue
		}
		if old.Data, err = p.Book.store.Data(ctx, old.Seq); err != nil {
			return Published{}, err
		}
		if timeless {
			old.Time = time.Time{}
		}
		if old.hash() != hash {
			return Published{}, holdfast.ErrConflict
		}
		return Published{ID: old.ID, Source: old.Source, Matched: old.Matched, Duplicate: true}, nil
	}
	return Published{}, holdfast.ErrNotFound
}

// Trial returns the message that a subscriber would get of an event that is not stored. The error wraps
// ErrInvalid.
func (e *Event) Trial(source string) (holdfast.Message, error) {
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	if err := e.normalize(source); err != nil {
		return holdfast.Message{}, err
	}
	return holdfast.Message{ID: holdfast.NewID(), Source: e.Source, Endpoint: e.endpoint(), Payload: e.Data, Headers: e.headers()}, nil
}

// asked returns the event as filters see it.
func (e *Event) asked() *filter.Event {
	asked := &filter.Event{Topic: e.Topic, Type: e.Type, Source: e.Source, Subject: e.Subject, Time: e.Time, Attributes: e.Attributes, Data: e.Data}
	if e.ContentType == CloudEventJSON {
		var document struct {
			Data jsontext.Value `json:"data"`
		}
		if jsonv2.Unmarshal(e.Data, &document) != nil {
			document.Data = nil // no object has no data
		}
		asked.Data = document.Data
	}
	return asked
}

// endpoint is what a message calls the type of an event.
func (e *Event) endpoint() string {
	if printable(e.Type) {
		return e.Type
	}
	return e.Topic
}

// bundle returns what is stored of an event. Each message has an id of its own, and the event names the
// version in which it was matched.
func (e *Event) bundle(hash [32]byte, to []match, version int64) (holdfast.Bundle, error) {
	attributes, err := json.Marshal(e.Attributes)
	if err != nil {
		return holdfast.Bundle{}, err
	}
	b := holdfast.Bundle{
		Kind: BundleKind, Source: e.Source, ID: e.ID, Hash: hash, Payload: e.Data,
		Parent: &rows.Event{
			ID: string(e.ID), Source: e.Source, Topic: e.Topic, Type: e.Type, Subject: e.Subject, At: e.Time.UnixMicro(), Attributes: string(attributes),
			Media: e.ContentType, Actor: e.Actor, Matched: int64(len(to)), Version: version, Received: rows.Now,
		},
		Messages: make([]holdfast.Message, len(to)), Rows: make([]holdfast.Row, len(to)),
	}
	headers := e.headers()
	for i, m := range to {
		id := holdfast.NewID()
		b.Messages[i] = holdfast.Message{ID: id, Destination: Lane(m.id), Endpoint: e.endpoint(), Headers: headers}
		b.Rows[i] = &rows.Delivery{Subscription: m.id, Version: m.version, Message: string(id), Settled: rows.None}
	}
	return b, nil
}

// EventIDHeader is the header of a message that names its event.
const EventIDHeader = "ce-id"

// headerContentType is the header of a message that says what its payload is.
const headerContentType = "content-type"

// What a message has of the attributes of its event. It must leave room for other headers.
const (
	maxExtensions     = 32
	maxExtensionBytes = 4 << 10
)

// headers are those of each message of the event: its attributes as a CloudEvent has them, in the order of
// their names as far as they fit.
func (e *Event) headers() map[string]string {
	h := map[string]string{EventIDHeader: string(e.ID), "ce-source": e.Source, "ce-type": e.Type, "ce-time": e.Time.Format(time.RFC3339Nano), "ce-topic": e.Topic}
	if e.Subject != "" && isLine(e.Subject) {
		h["ce-subject"] = e.Subject
	}
	if e.ContentType != "" {
		h[headerContentType] = e.ContentType
		return h // the CloudEvent has its own
	}
	n, size := 0, 0
	for _, name := range slices.Sorted(maps.Keys(e.Attributes)) {
		value := e.Attributes[name]
		if !extension(name) || h["ce-"+name] != "" || !isLine(value) || n == maxExtensions || size+len(name)+len(value) > maxExtensionBytes {
			continue
		}
		h["ce-"+name] = value
		n, size = n+1, size+len(name)+len(value)
	}
	return h
}

// extension reports whether an attribute may be an extension of a CloudEvent.
func extension(name string) bool {
	for i := range len(name) {
		if c := name[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return name != "data" && name != "specversion" && name != "datacontenttype" && name != "dataschema"
}
