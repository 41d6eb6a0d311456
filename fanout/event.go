package fanout

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

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
	// Attributes are more about it, for filters and receivers. Names have lower-case letters, digits
	// and _ - # only.
	Attributes map[string]string
	Data       []byte // JSON; sent as it is
	Actor      string // who publishes it, for people; not sent
}

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
	faults := []error{err, checkName("topic", e.Topic), checkPrintable("type", e.Type), checkPrintable("source", e.Source), checkText("subject", e.Subject)}
	if !json.Valid(e.Data) {
		faults = append(faults, &holdfast.FieldError{Field: "data", Value: fmt.Sprint(len(e.Data), " bytes"), Problem: "is not JSON"})
	}
	if year := e.Time.UTC().Year(); year < 1 || year > 9999 {
		faults = append(faults, &holdfast.FieldError{Field: "time", Value: fmt.Sprint(year), Problem: "must be in the years 1 to 9999"})
	}
	return invalid(append(faults, e.checkAttributes())...)
}

// checkPrintable accepts what a message takes as a source and as an endpoint.
func checkPrintable(field, s string) error {
	if s == "" || len(s) > holdfast.MaxNameLen || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return &holdfast.FieldError{Field: field, Value: fmt.Sprintf("%.80q", s), Problem: fmt.Sprintf("must be 1 to %d printable ASCII characters without spaces", holdfast.MaxNameLen)}
	}
	return nil
}

// Limits of the attributes of an event.
const (
	maxAttributes     = 32
	maxAttributeBytes = 4 << 10
)

func (e *Event) checkAttributes() error {
	size := 0
	for name, value := range e.Attributes {
		size += len(name) + len(value)
		if name == "" || strings.Trim(name, lower+digits+"_-#") != "" {
			return &holdfast.FieldError{Field: "attributes", Value: fmt.Sprintf("%.80q", name), Problem: "is no name of an attribute: use lower-case letters, digits and _ - #"}
		}
		if err := checkText("attributes."+name, value); err != nil {
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
