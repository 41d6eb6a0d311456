package notify

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Channel is a medium by which people are notified: one mail server, one webhook, one chat room.
// Its messages wait in their own lane, so a channel that is down does not hold up the others.
type Channel struct {
	Name     string
	Kind     string          // kind of its adapter: email, teams, slack, ntfy, gotify, webhook
	Settings json.RawMessage // the adapter's; they contain secrets by name, or sealed
	Retry    Retry
	Workers  int // most concurrent deliveries; zero: 4
	Disabled bool
	Changed  time.Time // set by the store
	Version  int64     // of this channel in its store; a replacement must name it; zero: not stored
}

// Retry says how often a channel tries a notification, at a fixed interval (NO-10). Zero means not
// set: 10 attempts, one minute. A negative value becomes that default, with a warning.
type Retry struct {
	Attempts int             // failed attempts before it parks (SF-29)
	Interval time.Duration   // between two attempts
	Waits    []time.Duration // replaces Interval; the last one repeats
}

// DefaultRetry returns the retry of a channel that sets none (NO-10).
func DefaultRetry() Retry { return Retry{Attempts: 10, Interval: time.Minute} }

// NewRetry returns the Retry for values that somebody has given; nil: not given. Attempts or an
// interval that is not above zero becomes the default; the caller warns of that (NO-10). Waits
// replace an interval.
func NewRetry(attempts *int, interval *time.Duration, waits []time.Duration) Retry {
	usual, r := DefaultRetry(), Retry{Waits: waits}
	if attempts != nil {
		if r.Attempts = *attempts; r.Attempts <= 0 {
			r.Attempts = usual.Attempts
		}
	}
	if interval != nil {
		if r.Interval = max(*interval, 0); r.Interval == 0 && len(waits) == 0 {
			r.Interval = usual.Interval
		}
	}
	return r
}

// List has the recipients of a notification. Only central keeps lists (NO-06).
type List struct {
	Name        string
	Description string
	Recipients  []Recipient
	Partial     bool      // if some recipients refuse permanently, the copy still counts as delivered, with a mark; otherwise it parks
	Changed     time.Time // set by the store
	Version     int64     // of this list in its store; a replacement must name it; zero: not stored
}

// Recipient is one address on a channel. The pair is unique within a list.
type Recipient struct {
	Channel  string
	Address  string // as the channel's adapter reads it: a mail address, a topic; may be empty if the channel has one target
	Name     string // for people; may be empty
	Disabled bool
}

// Directory has all channels and lists, by name, as of one version.
type Directory struct {
	Version  int64 // grows with each change of a channel or list
	Channels map[string]Channel
	Lists    map[string]List
}

// Seen checks a change of a channel or a list. The author has seen version seen, or zero for a new
// one; the store has version present, if found. Seen returns nil if they agree. If end is set and
// the thing is gone, it returns ErrNotFound.
func Seen(found bool, present, seen int64, end bool) error {
	switch {
	case !found && end:
		return holdfast.ErrNotFound
	case !found && seen != 0:
		return fmt.Errorf("it does not exist any more: %w", holdfast.ErrState)
	case found && seen == 0:
		return fmt.Errorf("it exists already: %w", holdfast.ErrState)
	case found && seen != present:
		return fmt.Errorf("somebody else has changed it: %w", holdfast.ErrState)
	}
	return nil
}
