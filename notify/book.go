package notify

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Channel is a way to people: one mail server, one webhook, one chat room. Its
// messages wait in a lane of its own, so that one that is away costs the others
// nothing.
type Channel struct {
	Name     string
	Kind     string          // which adapter: email, teams, slack, ntfy, gotify, webhook
	Settings json.RawMessage // the adapter's; secrets stand in it by name only
	Retry    Retry
	Workers  int // the most deliveries at once; zero: 4
	Disabled bool
	Changed  time.Time // set by the store
	Version  int64     // of this channel in its store: what replaces it must know it; zero: it is in none
}

// Retry is how often a channel tries a notification, at a fixed interval
// (NO-10). What is zero is not said, and is 10 and a minute; what is below becomes
// that with a warning.
type Retry struct {
	Attempts int             // failed attempts in all (SF-29)
	Interval time.Duration   // between two
	Waits    []time.Duration // instead of Interval; the last repeats
}

// DefaultRetry returns what a channel does that says nothing (NO-10).
func DefaultRetry() Retry { return Retry{Attempts: 10, Interval: time.Minute} }

// NewRetry is what somebody said of how often a channel tries; nil: nothing. An
// attempts or interval that is not above zero becomes the default, of which who
// takes it in warns (NO-10). Waits stand instead of an interval.
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

// List is who gets a notification. Lists are kept at central only (NO-06).
type List struct {
	Name        string
	Description string
	Recipients  []Recipient
	Partial     bool      // delivered, with a mark, when some were refused for good; else it parks
	Changed     time.Time // set by the store
	Version     int64     // of this list in its store: what replaces it must know it; zero: it is in none
}

// Recipient is one address on a channel. The pair is unique within a list.
type Recipient struct {
	Channel  string
	Address  string // what the channel's adapter reads: a mail address, a topic; may be empty where the channel has one target
	Name     string // for people; may be empty
	Disabled bool
}

// Book is all channels and lists, by name, as of one version.
type Book struct {
	Version  int64 // grows with each change of any of them
	Channels map[string]Channel
	Lists    map[string]List
}

// Seen is what a store says to who changes a channel or a list, knowing the
// version seen, or zero for one that is new: nil, if that is so. found and
// present are what there is; end says that one that is gone is ErrNotFound.
func Seen(found bool, present, seen int64, end bool) error {
	switch {
	case !found && end:
		return holdfast.ErrNotFound
	case !found && seen != 0:
		return fmt.Errorf("it does not exist any more: %w", holdfast.ErrState)
	case found && seen == 0:
		return fmt.Errorf("it exists by now: %w", holdfast.ErrState)
	case found && seen != present:
		return fmt.Errorf("it was changed meanwhile: %w", holdfast.ErrState)
	}
	return nil
}
