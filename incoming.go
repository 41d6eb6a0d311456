package holdfast

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"
)

// LongestMemory caps for how long a sender can make an inbox remember an id (OI-10).
const LongestMemory = 366 * 24 * time.Hour

// NormalizeIncoming canonicalizes a message that came in, in place: its id, a
// zero kind, and a payload that is absent. Inbox stores call it first; the
// error wraps ErrInvalid.
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

// ContentHash covers what makes two messages of one id the same to an inbox:
// kind, endpoint and payload, each with its length, so that no boundary can
// move. Stores keep it: it must not change.
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

// Forgotten says whether an id that an inbox does not know may have been known
// once. In its first cycle a sender has told until when it would retry, and ids
// are kept that long, up to LongestMemory; a sender that told nothing, and a
// later cycle, may come after the id is gone (OI-10).
func (a *Attempt) Forgotten(retention time.Duration) bool {
	return !a.Forced && a.FirstAgo > retention && (a.Cycle > 1 || a.RetryFor < 0 || a.FirstAgo > LongestMemory)
}

// Memory is for how long an inbox keeps the id that this attempt brought.
func (a *Attempt) Memory(retention time.Duration) time.Duration {
	return max(retention, min(a.RetryFor, LongestMemory))
}
