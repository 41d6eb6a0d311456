package holdfast

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"
)

// LongestMemory caps how long a sender can make an inbox remember an id (OI-10).
const LongestMemory = 366 * 24 * time.Hour

// NormalizeIncoming canonicalizes an incoming message in place: its id, a zero kind and a
// nil payload. Inbox stores call it first. The error wraps ErrInvalid.
func NormalizeIncoming(m *Message) error {
	id, err := ParseID(string(m.ID))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if m.Source == "" {
		return fmt.Errorf("%w: %w", ErrInvalid, &FieldError{Field: "source", Problem: "must not be empty"})
	}
	m.ID = id
	if m.Kind == "" {
		m.Kind = Signal
	}
	if m.Payload == nil {
		m.Payload = []byte{}
	}
	return nil
}

// ContentHash covers what makes two messages of one id the same to an inbox: kind,
// endpoint and payload. The length of each is hashed too, so that no boundary can move.
// Stores keep the hash: it must not change.
func (m *Message) ContentHash() []byte {
	h := sha256.New()
	var n [8]byte
	for _, part := range [][]byte{[]byte(m.Kind), []byte(m.Endpoint), m.Payload} {
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write(part)
	}
	return h.Sum(nil)
}

// Forgotten reports whether an inbox may have known this id once and forgotten it. In its
// first cycle, a sender tells how long it will retry, and ids are kept that long, up to
// LongestMemory. If a sender tells nothing, or in a later cycle, a message may come after
// its id is gone (OI-10).
func (a *Attempt) Forgotten(retention time.Duration) bool {
	return !a.Forced && a.FirstAgo > retention && (a.Cycle > 1 || a.RetryFor < 0 || a.FirstAgo > LongestMemory)
}

// Memory returns how long an inbox keeps the id that this attempt brought.
func (a *Attempt) Memory(retention time.Duration) time.Duration {
	return max(retention, min(a.RetryFor, LongestMemory))
}
