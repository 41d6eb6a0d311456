package holdfast

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-mq/holdfast/internal/shown"
)

// Limits of a message's fields, in bytes. They bound index rows and log lines. They do
// not bound the payload: whoever accepts messages sets that limit.
const (
	MaxNameLen    = 128 // destination, endpoint, source, ordering key, correlation id
	MaxIDLen      = MaxNameLen
	MaxHeaders    = 64
	MaxHeaderSize = 8 << 10 // all names and values together
)

// ID names a message for ever and is the idempotency key of every attempt. It is 1
// to 128 printable ASCII bytes. A UUID in any of its usual forms is one value,
// kept in the canonical lower-case form with hyphens (SF-12, SF-14).
type ID string

// NewID mints a UUIDv7. UUIDv7s sort by time, which keeps the id index local.
func NewID() ID {
	u, err := uuid.NewV7()
	if err != nil {
		// Only a broken system random source gets here, and no id that we could invent
		// would be safe.
		panic(fmt.Errorf("mint message id: %w", err))
	}
	return ID(u.String())
}

// ParseID checks s and returns its canonical form.
func ParseID(s string) (ID, error) {
	switch n := len(s); {
	case n == 32, n == 36, n == 45, n == 38 && s[0] == '{' && s[37] == '}': // N, D, urn:uuid: and {D} forms
		if u, err := uuid.Parse(s); err == nil {
			return ID(u.String()), nil
		}
	}
	if err := checkName("id", s); err != nil {
		return "", err
	}
	return ID(s), nil
}

// UUID returns the 16 bytes of an id that is a UUID.
func (id ID) UUID() (uuid.UUID, bool) {
	if len(id) != 36 {
		return uuid.UUID{}, false
	}
	u, err := uuid.Parse(string(id))
	return u, err == nil
}

// IDOf returns the id of a UUID in its canonical form.
func IDOf(u uuid.UUID) ID { return ID(u.String()) }

// Kind says what a message is to its receiver (OI-02, OI-21).
type Kind string

// The kinds of the wire protocol. The zero Kind is sent as Signal.
const (
	Signal   Kind = "Signal"   // service to engine: something happened
	Command  Kind = "Command"  // engine to service: do something
	PushCall Kind = "PushCall" // service to engine: a method was called
	Response Kind = "Response" // carries the correlation id that it answers
)

func (k Kind) valid() bool {
	switch k {
	case Signal, Command, PushCall, Response:
		return true
	}
	return false
}

// Message is one unit of work: what to deliver, where, and how long to try. It holds
// durations; the store, which owns the clock, makes instants of them. A Message handed to
// a Deliverer or Receiver is shared: its Payload and Headers must not be changed.
type Message struct {
	ID            ID                // zero: minted by Enqueue
	Source        string            // the node or service that sends; zero: the store's Options.Source
	Destination   string            // selects the lane the message waits in
	Endpoint      string            // what is called there
	Kind          Kind              // zero: Signal
	CorrelationID string            // ties messages of one conversation together
	OrderingKey   string            // at most one message of a key is in flight; zero: no order
	Payload       []byte            // never re-encoded: the stored bytes are signed and sent; on the wire they must be JSON
	Headers       map[string]string // sent with the message; not part of its identity
	TTL           time.Duration     // after it the message expires; zero: never
	Delay         time.Duration     // earliest first attempt; zero: at once
	Retry         *RetryPolicy      // its zero fields, or nil: the destination's
	Attempt       Attempt           // set by the dispatcher and the wire, ignored by Enqueue
}

// Attempt tells the other side about one try of a message. A receiver derives from it how
// long to remember the id (OI-10). Ages are durations, so that nobody compares the clocks
// of two machines.
type Attempt struct {
	Number   int           // of this cycle, from 1
	Cycle    int           // from 1; each requeue by an operator starts another
	FirstAgo time.Duration // since the first attempt of all cycles
	RetryFor time.Duration // until the sender gives up by itself; negative: unknown
	Forced   bool          // an operator takes the risk that the receiver has forgotten the id
}

// normalize canonicalizes the id, fills the zero kind, and reports every
// fault of the message at once.
func (m *Message) normalize() error {
	var faults []error
	if m.ID == "" {
		m.ID = NewID()
	} else if id, err := ParseID(string(m.ID)); err != nil {
		faults = append(faults, err)
	} else {
		m.ID = id
	}
	if m.Kind == "" {
		m.Kind = Signal
	}
	if !m.Kind.valid() {
		faults = append(faults, &FieldError{"kind", string(m.Kind), "must be Signal, Command, PushCall or Response"})
	}
	if m.Kind == Response && m.CorrelationID == "" {
		faults = append(faults, &FieldError{"correlationId", "", "is missing: a Response carries the correlation id of what it answers"})
	}
	for _, f := range []struct{ name, value string }{
		{"source", m.Source}, {"destination", m.Destination}, {"endpoint", m.Endpoint},
	} {
		faults = append(faults, checkName(f.name, f.value))
	}
	if strings.HasPrefix(m.Destination, "$") {
		faults = append(faults, &FieldError{"destination", clip(m.Destination), "begins with $, which is reserved for the library"})
	}
	for _, f := range []struct{ name, value string }{
		{"correlationId", m.CorrelationID}, {"orderingKey", m.OrderingKey},
	} {
		if f.value != "" {
			faults = append(faults, checkText(f.name, f.value, MaxNameLen))
		}
	}
	if m.TTL < 0 {
		faults = append(faults, &FieldError{"ttl", m.TTL.String(), "must not be negative; leave it out for no expiry"})
	}
	if m.Delay < 0 {
		faults = append(faults, &FieldError{"delay", m.Delay.String(), "must not be negative"})
	}
	if m.Retry != nil {
		faults = append(faults, m.Retry.Validate())
	}
	faults = append(faults, checkHeaders(m.Headers))
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return nil
}

// Normalize canonicalizes the messages in place: ids, zero kinds, and empty sources,
// which become source. Stores call it first. The error wraps ErrInvalid and holds a
// FieldError for each fault.
func Normalize(source string, ms []Message) error {
	var faults []error
	for i := range ms {
		if ms[i].Source == "" {
			ms[i].Source = source
		}
		if err := ms[i].normalize(); err != nil {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

func checkHeaders(h map[string]string) error {
	if len(h) > MaxHeaders {
		return &FieldError{"headers", fmt.Sprint(len(h), " headers"), fmt.Sprintf("at most %d are kept", MaxHeaders)}
	}
	size := 0
	for name, value := range h {
		size += len(name) + len(value)
		if err := checkText("headers", name, MaxNameLen); err != nil {
			return err
		}
		if f, ok := errors.AsType[*FieldError](checkText("headers."+name, value, MaxHeaderSize)); ok && value != "" {
			f.Value = "" // it may be a credential
			return f
		}
	}
	if size > MaxHeaderSize {
		return &FieldError{"headers", fmt.Sprint(size, " bytes"), fmt.Sprintf("names and values may take %d bytes", MaxHeaderSize)}
	}
	return nil
}

// checkName accepts 1 to MaxNameLen printable ASCII bytes without spaces.
func checkName(field, s string) error {
	if s == "" {
		return &FieldError{field, s, "must not be empty"}
	}
	if len(s) > MaxNameLen {
		return &FieldError{field, clip(s), fmt.Sprintf("has %d bytes; at most %d fit", len(s), MaxNameLen)}
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return &FieldError{field, clip(s), fmt.Sprintf("byte %d is not a printable ASCII character", i+1)}
		}
	}
	return nil
}

// checkText accepts 1 to limit bytes of UTF-8 without control characters.
func checkText(field, s string, limit int) error {
	if s == "" {
		return &FieldError{field, s, "must not be empty"}
	}
	if len(s) > limit {
		return &FieldError{field, clip(s), fmt.Sprintf("has %d bytes; at most %d fit", len(s), limit)}
	}
	for _, r := range s {
		if r < ' ' || r == 0x7f || r == '\uFFFD' {
			return &FieldError{field, clip(s), "holds a control character or is not UTF-8"}
		}
	}
	return nil
}

// clip shortens a hostile value for an error text.
func clip(s string) string { return shown.Clip(s, 80) }
