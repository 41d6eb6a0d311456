package holdfast

import "time"

// EntryKind is what happened to a message.
type EntryKind uint8

// The kinds. The numbers are stored and never change.
const (
	Enqueued  EntryKind = 1
	Attempted EntryKind = 2 // State says where it led
	Requeued  EntryKind = 3
	GivenUp   EntryKind = 4 // discarded; State Pending or Claimed: it is to be when its attempt has ended
	TimedOut  EntryKind = 5 // expired
	Reclaimed EntryKind = 6 // its owner was gone

	Rescheduled EntryKind = 7
)

// CodeRenewed is the code of a Rescheduled entry that has begun the TTL anew. It is
// stored and never changes.
const CodeRenewed = "ttl_renewed"

var entryNames = [...]string{"", "enqueued", "attempted", "requeued", "discarded", "expired", "reclaimed", "rescheduled"}

func (k EntryKind) String() string {
	if k > 0 && int(k) < len(entryNames) {
		return entryNames[k]
	}
	return "unknown"
}

// Entry is one change of one message in the journal. Failures and decisions
// are always kept with the message; first enqueues and deliveries are written
// only while something follows the journal, and shown from the row otherwise.
type Entry struct {
	Seq         int64
	ID          ID
	Destination string
	Kind        EntryKind
	State       State // after it
	Reason      Reason
	At          time.Time
	Cycle       int
	Attempt     int // number in its cycle
	Outcome     Outcome
	Charged     bool
	Code, Error string
	Maybe       bool
	Took        time.Duration // of an attempt; of a Rescheduled, from At until it is tried
	Actor       string        // who, where a person or token did it
}
