package fanout

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-mq/holdfast"
)

// BundleKind is the Kind of the bundle of an event.
const BundleKind = "event"

// Event is what a program publishes.
type Event struct {
	ID      holdfast.ID // its idempotency key within Source; empty: Publish mints one
	Source  string      // who it is from; empty: the node
	Topic   string      // where it is published
	Type    string      // what has happened, such as order.paid; empty: the name of the topic
	Subject string      // what it happened to; may be empty
	Time    time.Time   // when it happened; zero: when it was published
	// Attributes are more about it, for filters and, as far as they fit, for receivers of CloudEvents.
	Attributes map[string]string
	Data       []byte // JSON; sent as it is
	// ContentType is of Data; empty: application/json. CloudEventJSON says that Data is a CloudEvent as a whole,
	// of which the data are those that filters see.
	ContentType string
	Actor       string // who publishes it, for people; not sent
	// Suits is asked of the topic, and Fits of each subscription that the event is for; each may refuse the event. Nil:
	// it does not. They must not change what they are asked about.
	Suits func(t *Topic) error
	Fits  func(s *Subscription) error
}

// CloudEventJSON is the content type of a CloudEvent in its JSON format.
const CloudEventJSON = "application/cloudevents+json"

// Stored is an event as the store has it.
type Stored struct {
	Event

	Seq      int64     // of its bundle
	Matched  int       // subscriptions that it was for
	Version  int64     // of the subscriptions among which they were
	Received time.Time // by the store
}

// Delivery is the part of one subscription in an event, or in a resend of it.
type Delivery struct {
	Seq          int64 // of the message
	Subscription string
	Version      int64 // of the subscription
	Message      holdfast.ID
	State        holdfast.State // once the message is purged: the one that it had
	Purged       bool
	Settled      time.Time   // of a purged message
	Request      holdfast.ID // the resend; empty: the event itself
	Actor        string      // who asked for the resend
}

// normalize fills what is not given, but for the time, and checks the rest. The error wraps ErrInvalid.
func (e *Event) normalize(source string) error {
	if e.ID == "" {
		e.ID = holdfast.NewID()
	}
	if e.Source == "" {
		e.Source = source
	}
	if e.Type == "" {
		e.Type = e.Topic
	}
	id, err := holdfast.ParseID(string(e.ID))
	e.ID = id
	faults := []error{err, checkName("topic", e.Topic), checkLine("type", e.Type), checkPrintable("source", e.Source), checkText("subject", e.Subject)}
	if !json.Valid(e.Data) {
		faults = append(faults, &holdfast.FieldError{Field: "data", Value: fmt.Sprint(len(e.Data), " bytes"), Problem: "is not JSON"})
	}
	if e.ContentType != "" && e.ContentType != CloudEventJSON {
		faults = append(faults, &holdfast.FieldError{Field: "contentType", Value: fmt.Sprintf("%.80q", e.ContentType), Problem: "must be " + CloudEventJSON + ", or empty for application/json"})
	}
	if year := e.Time.UTC().Year(); year < 1 || year > 9999 {
		faults = append(faults, &holdfast.FieldError{Field: "time", Value: fmt.Sprint(year), Problem: "must be in the years 1 to 9999"})
	}
	return invalid(append(faults, e.checkAttributes())...)
}

// printable reports whether a message takes s as a source and as an endpoint.
func printable(s string) bool {
	return s != "" && len(s) <= holdfast.MaxNameLen && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

func checkPrintable(field, s string) error {
	if !printable(s) {
		return &holdfast.FieldError{Field: field, Value: fmt.Sprintf("%.80q", s), Problem: fmt.Sprintf("must be 1 to %d printable ASCII characters without spaces", holdfast.MaxNameLen)}
	}
	return nil
}

// checkLine accepts a text that a header of a message can hold.
func checkLine(field, s string) error {
	if s == "" || !isLine(s) {
		return &holdfast.FieldError{Field: field, Value: fmt.Sprintf("%.80q", s), Problem: "must be a text on one line"}
	}
	return checkText(field, s)
}

// isLine reports whether a text has no control characters and is UTF-8.
func isLine(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || r == utf8.RuneError })
}

// Limits of the attributes of an event, in bytes where it is not said.
const (
	maxAttributes     = 256 // of them
	maxAttribute      = 4000
	maxAttributeBytes = 64 << 10
)

func (e *Event) checkAttributes() error {
	size := 0
	for name, value := range e.Attributes {
		size += len(name) + len(value)
		if name == "" || len(name) > maxAttributeName || !isLine(name) {
			return &holdfast.FieldError{Field: "attributes", Value: fmt.Sprintf("%.80q", name), Problem: fmt.Sprintf("is no name of an attribute: use 1 to %d bytes of text on one line", maxAttributeName)}
		}
		if err := checkTextTo("attributes."+name, value, maxAttribute); err != nil {
			return err
		}
	}
	if len(e.Attributes) > maxAttributes || size > maxAttributeBytes {
		return &holdfast.FieldError{Field: "attributes", Value: fmt.Sprint(len(e.Attributes)), Problem: fmt.Sprintf("must be at most %d, of %d bytes together", maxAttributes, maxAttributeBytes)}
	}
	return nil
}

// hash is of what may not change under one id. A publisher that leaves out the time says the same when it
// asks again.
func (e *Event) hash() [32]byte {
	h := sha256.New()
	write := func(s string) { h.Write(fmt.Appendf(nil, "%d:%s", len(s), s)) }
	for _, s := range []string{e.Topic, e.Type, e.Subject} {
		write(s)
	}
	if e.ContentType != "" {
		write(e.ContentType)
	}
	if !e.Time.IsZero() {
		write(e.Time.UTC().Truncate(time.Microsecond).Format(time.RFC3339Nano))
	}
	for _, name := range slices.Sorted(maps.Keys(e.Attributes)) {
		write(name)
		write(e.Attributes[name])
	}
	write(string(e.Data))
	return [32]byte(h.Sum(nil))
}
