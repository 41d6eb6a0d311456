package wire

import (
	"github.com/holdfast-mq/holdfast"
)

// check canonicalizes the message's id and kind and checks its fields by the rules of
// holdfast.Normalize. Almost every message is plain; for those it skips the call and its
// allocations.
func (e *Envelope) check() error {
	m := &e.Message
	if m.Kind == "" {
		m.Kind = holdfast.Signal
	}
	if plainMessage(m) {
		return nil
	}
	c := *m
	c.Destination = "-" // the destination does not travel
	c.TTL, c.Delay, c.Retry = 0, 0, nil
	if c.ID == "" {
		return &holdfast.FieldError{Field: "id", Problem: "must not be empty"} // Normalize would make a new id
	}
	one := []holdfast.Message{c}
	if err := holdfast.Normalize("", one); err != nil {
		return err
	}
	m.ID = one[0].ID
	return nil
}

// plainMessage reports whether Normalize would accept m unchanged. It may say no to such a message,
// but never yes to another; a test checks that.
func plainMessage(m *holdfast.Message) bool {
	if !canonical(string(m.ID)) || !plain(m.Source) || !plain(m.Endpoint) {
		return false
	}
	if len(m.CorrelationID) > holdfast.MaxNameLen || len(m.OrderingKey) > holdfast.MaxNameLen ||
		!printable(m.CorrelationID) || !printable(m.OrderingKey) {
		return false
	}
	switch m.Kind {
	case holdfast.Signal, holdfast.Command, holdfast.PushCall:
	case holdfast.Response:
		if m.CorrelationID == "" {
			return false // Normalize refuses it
		}
	default:
		return false
	}
	if len(m.Headers) > holdfast.MaxHeaders {
		return false
	}
	size := 0
	for name, value := range m.Headers {
		size += len(name) + len(value)
		if !plain(name) || !printable(value) {
			return false
		}
	}
	return size <= holdfast.MaxHeaderSize
}

// canonical reports whether s is a UUID as holdfast.ParseID would write it.
func canonical(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				return false
			}
		}
	}
	return true
}

// plain reports whether s is 1 to MaxNameLen printable ASCII bytes.
func plain(s string) bool {
	return s != "" && len(s) <= holdfast.MaxNameLen && visible(s, '!')
}

// printable reports whether s is ASCII text without control characters.
func printable(s string) bool { return visible(s, ' ') }

func visible(s string, lowest byte) bool {
	for i := range len(s) {
		if s[i] < lowest || s[i] > '~' {
			return false
		}
	}
	return true
}
