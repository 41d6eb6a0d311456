package holdfast

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"
)

// Journal tells followers what has changed in a store, each change exactly once.
// Every method may be called concurrently.
type Journal interface {
	// Project calls project with the entries that the follower has not read yet, page after
	// page. One transaction writes the rows that project returns and the follower's new
	// position. So each entry takes effect exactly once: over restarts of the process,
	// restores of the database, and a dump into another one. project runs outside of
	// transactions and may take its time.
	//
	// A page is in the order of Seq. This holds for one process. Where several nodes write to
	// one database, an entry may come in a later page than one with a higher Seq, even of the
	// same message or subject: a follower that keeps the last state must compare Seq. A page
	// has at most 500 entries, and ends after the entry that brings it to 1 MiB. The page,
	// with all that is in it, belongs to project.
	//
	// Project blocks until ctx ends (nil), project fails or panics (its error), the follower
	// is forgotten (ErrNotFound), or the store is closed. Then it writes nothing of the
	// page. While the disk is full or the database is away, it waits. Other followers are not
	// affected.
	//
	// Several processes may follow under one name: the page of one is written, and those of
	// the others are dropped.
	Project(ctx context.Context, f Follower, project func(ctx context.Context, page []Entry) ([]Row, error)) error

	// Forget ends a follower, so that entries need not be kept for it. ErrNotFound: no
	// follower has this name.
	Forget(ctx context.Context, follower string) error

	// Followers lists all followers by name.
	Followers(ctx context.Context) ([]FollowerInfo, error)

	// Append writes entries of the kind Called, all or none, if anything follows the journal.
	// ErrInvalid: see CheckEntries.
	Append(ctx context.Context, entries ...Entry) error
}

// Follower reads the journal. Entries are kept until it has read them: Forget a follower
// that will not come back.
type Follower struct {
	Name string
	// FromStart makes a new follower begin with the oldest entry that is kept. Otherwise it
	// begins with the next entry, and may miss what a transaction that is open at that moment
	// has written. A known follower goes on where it was.
	FromStart bool
	// Resume is called before the first page, and before each page for which the rows that
	// project returned before may not be the stored ones: a write failed, another process
	// followed under the name, or the database went back. Between two calls of Resume, all
	// rows that project returned are committed when project is called again. So read here what
	// project must know of its own rows, and keep it in memory. Nil: nothing is called.
	Resume func(ctx context.Context) error
	// About gives each entry of a message in the outbox what is known of the message: Entry.About.
	About bool
}

// FollowerInfo is how far a follower has come.
type FollowerInfo struct {
	Name string
	// Unread is when the first entry that it has not read yet was written; zero: it has read
	// all.
	Unread time.Time
	// Running is whether Project runs for it on this store, in this process. Of other processes
	// nothing is known.
	Running bool
}

// Row is one row of a table that a store keeps for a feature: a pointer to a struct of
// package rows. A row replaces the row with the same key.
type Row interface {
	// Table returns the name of its table, the same in both stores.
	Table() string
}

// EntryKind is what has happened.
type EntryKind uint8

// The kinds of a message's own entries. The numbers are stored and never change.
const (
	Enqueued    EntryKind = 1
	Attempted   EntryKind = 2 // State says what the attempt led to
	Requeued    EntryKind = 3
	GivenUp     EntryKind = 4 // discarded; State Pending or Claimed: to be discarded when the attempt has ended
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
	SiteRenewed    EntryKind = 21 // may enroll again
	SiteRevoked    EntryKind = 22
	Called         EntryKind = 23 // the operator API was asked for a change; Code is the operation
	Copied         EntryKind = 24 // records of the audit log Subject, of a site, into this store

	TopicPut            EntryKind = 25
	TopicRemoved        EntryKind = 26
	SubscriptionPut     EntryKind = 27 // Code is its state
	SubscriptionRemoved EntryKind = 28
	SchedulePut         EntryKind = 29 // of subscriptions without one of their own; Code says for what it counts, or ScheduleReset

	PersonPut     EntryKind = 30 // Code is the change
	PersonRemoved EntryKind = 31
)

// ScheduleReset is the code of a SchedulePut entry that gave up the schedule that was set. It is stored and never
// changes.
const ScheduleReset = "reset"

// CodeRenewed is the code of a Rescheduled entry that started the TTL anew. It is stored
// and never changes.
const CodeRenewed = "ttl_renewed"

var entryNames = [...]string{
	"", "enqueued", "attempted", "requeued", "discarded", "expired", "reclaimed", "rescheduled",
	"reached", "handled", "kept", "paused", "resumed", "list_put", "list_removed", "channel_put", "channel_removed",
	"token_added", "token_removed", "site_added", "site_enrolled", "site_renewed", "site_revoked", "called", "copied",
	"topic_put", "topic_removed", "subscription_put", "subscription_removed", "schedule_put", "person_put", "person_removed",
}

func (k EntryKind) String() string {
	if k > 0 && int(k) < len(entryNames) {
		return entryNames[k]
	}
	return "unknown"
}

// Entry is one change in the journal, of one message or of what Subject names. Failures of
// messages and decisions about them are always kept with the message. First enqueues,
// deliveries, and all entries outside a message's own history are written only while
// something follows the journal.
type Entry struct {
	Seq         int64 // grows from change to change of one message, or of one subject
	ID          ID    // of the message; empty: the entry is not about a message
	Destination string
	Subject     string // the destination, list, channel, token, site, source or address that the entry is about
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
	Took        time.Duration // of an attempt; of a Rescheduled entry, from At until the next try
	Actor       string        // the person or token that did it; empty: neither did
	Detail      []byte        // more about it, as JSON; nil: no detail
	About       *About        // of the message in the outbox; nil: there is none, or nobody asked
}

// About is what a message says of itself, without its payload. Only a Follower that asks is given it.
type About struct {
	Source, Endpoint string
	Kind             Kind
	CorrelationID    string
	Headers          map[string]string
	Created          time.Time
}

// Limits of appended entries: how many one call may have, and how many bytes each field may have.
const (
	MaxEntries = 100
	MaxSubject = 1 << 10
	MaxDetail  = 4 << 10
)

// CheckEntries reports which entries no journal would append. An appended entry has a Kind,
// Subject, Outcome, Code, Error, Actor and Detail, and nothing else: the store sets Seq
// and At. The error is ErrInvalid.
func CheckEntries(list []Entry) error {
	if len(list) > MaxEntries {
		return fmt.Errorf("%d entries, more than the %d of a call: %w", len(list), MaxEntries, ErrInvalid)
	}
	for i := range list {
		e := &list[i]
		var problem string
		switch {
		case e.Kind != Called:
			problem = "is " + e.Kind.String() + "; the store writes that itself"
		case len(e.Subject) > MaxSubject || len(e.Code) > MaxSubject || len(e.Actor) > MaxSubject || len(e.Error) > MaxDetail || len(e.Detail) > MaxDetail:
			problem = "is too long"
		case e.Detail != nil && !json.Valid(e.Detail):
			problem = "has a detail that is not JSON"
		case !reflect.DeepEqual(*e, Entry{Kind: e.Kind, Subject: e.Subject, Outcome: e.Outcome, Code: e.Code, Error: e.Error, Actor: e.Actor, Detail: e.Detail}):
			problem = "has a field that is not kept"
		default:
			continue
		}
		return fmt.Errorf("entry %d %s: %w", i, problem, ErrInvalid)
	}
	return nil
}
