package holdfast

import (
	"encoding/json"
	"fmt"
	"time"
)

// EntryKind is what has happened.
type EntryKind uint8

// The kinds of a message's own entries. The numbers are stored and never change.
const (
	Enqueued    EntryKind = 1
	Attempted   EntryKind = 2 // State says where it led
	Requeued    EntryKind = 3
	GivenUp     EntryKind = 4 // discarded; State Pending or Claimed: it is to be when its attempt has ended
	TimedOut    EntryKind = 5 // expired
	Reclaimed   EntryKind = 6 // its owner was gone
	Rescheduled EntryKind = 7
)

// The kinds that are written only while something follows the journal. The numbers
// are stored and never change.
const (
	Reached        EntryKind = 8  // one recipient of a notification was asked: Subject is the address
	Handled        EntryKind = 9  // an incoming message, of the source Subject, was handled, or fetched and done
	KeptToFetch    EntryKind = 10 // an incoming message, of the source Subject, waits for a program
	Paused         EntryKind = 11 // a destination
	Resumed        EntryKind = 12 // a destination
	ListPut        EntryKind = 13
	ListRemoved    EntryKind = 14
	ChannelPut     EntryKind = 15
	ChannelRemoved EntryKind = 16
	TokenAdded     EntryKind = 17
	TokenRemoved   EntryKind = 18
	SiteAdded      EntryKind = 19
	SiteEnrolled   EntryKind = 20
	SiteRenewed    EntryKind = 21 // it may enroll again
	SiteRevoked    EntryKind = 22
	Called         EntryKind = 23 // the operator API was asked to change something: Code is the operation
)

// CodeRenewed is the code of a Rescheduled entry that has begun the TTL anew. It is
// stored and never changes.
const CodeRenewed = "ttl_renewed"

var entryNames = [...]string{
	"", "enqueued", "attempted", "requeued", "discarded", "expired", "reclaimed", "rescheduled",
	"reached", "handled", "kept", "paused", "resumed", "list_put", "list_removed", "channel_put", "channel_removed",
	"token_added", "token_removed", "site_added", "site_enrolled", "site_renewed", "site_revoked", "called",
}

func (k EntryKind) String() string {
	if k > 0 && int(k) < len(entryNames) {
		return entryNames[k]
	}
	return "unknown"
}

// Entry is one change in the journal: of one message, or of what Subject names.
// Failures of messages and decisions about them are always kept with the message;
// first enqueues, deliveries and all that is of no message's own history are
// written only while something follows the journal.
type Entry struct {
	Seq         int64 // grows from change to change of one message, or of one subject
	ID          ID    // of the message; empty: it is about none
	Destination string
	Subject     string // the destination, list, channel, token, site, source or address that it is about
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
	Detail      []byte        // more about it, as JSON; nil: there is none
}

// Row is one row of a table that a store keeps for a feature: a pointer to a struct
// of package rows, which says its columns.
type Row interface {
	// Table is the name of its table, in both stores.
	Table() string
}

// What an entry may hold that is appended, in bytes.
const (
	MaxSubject = 1 << 10
	MaxDetail  = 4 << 10
)

// CheckEntries says what of entries that are to be appended no journal takes. The
// error is ErrInvalid.
func CheckEntries(list []Entry) error {
	for i := range list {
		e := &list[i]
		problem := ""
		switch {
		case e.Kind != Called:
			problem = "is " + e.Kind.String() + "; the store writes that itself"
		case len(e.Subject) > MaxSubject || len(e.Code) > MaxSubject || len(e.Actor) > MaxSubject || len(e.Error) > MaxDetail || len(e.Detail) > MaxDetail:
			problem = "is too long"
		case e.Detail != nil && !json.Valid(e.Detail):
			problem = "has a detail that is not JSON"
		default:
			continue
		}
		return fmt.Errorf("entry %d %s: %w", i, problem, ErrInvalid)
	}
	return nil
}
