package holdfast

import (
	"fmt"
	"time"
)

func (v Verb) String() string {
	switch v {
	case VerbRequeue:
		return "requeue"
	case VerbDiscard:
		return "discard"
	case VerbReschedule:
		return "reschedule"
	}
	return fmt.Sprintf("verb(%d)", uint8(v))
}

// LeadsTo returns the state of a message after v, if the message is not in hand.
func (v Verb) LeadsTo() State {
	if v == VerbDiscard {
		return Discarded
	}
	return Pending
}

// Check is the first step of a store's verb. It returns the id in its canonical form. The
// error wraps ErrInvalid.
func (v Verb) Check(id ID, ttl, in time.Duration) (ID, error) {
	own, err := ParseID(string(id))
	if err != nil {
		return "", fmt.Errorf("%s: %w: %w", v, ErrInvalid, err)
	}
	for field, d := range map[string]time.Duration{"ttl": ttl, "in": in} {
		if d < 0 {
			return "", fmt.Errorf("%s %s: %w: %w", v, own, ErrInvalid, &FieldError{field, d.String(), "must not be negative"})
		}
	}
	return own, nil
}

// TooLate returns the error for a reschedule past the end of the message's TTL, which is
// left from now.
func (v Verb) TooLate(in, left time.Duration) error {
	return fmt.Errorf("%w: %w", ErrInvalid, &FieldError{
		"in", in.String(), fmt.Sprintf("is after the message's TTL, which ends in %s: it would expire first", max(left, 0).Round(time.Millisecond)),
	})
}
