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
	// Project calls project with what the follower has yet to read, page after page. The
	// rows that it returns, and how far the follower has come, are written in one
	// transaction: over restarts of the process, restores of the database and a dump into
	// another one each entry takes effect exactly once. project runs outside of
	// transactions and may take its time.
	//
	// A page is in the order of Seq. Pages are so of one process; where several nodes write
	// to one database, an entry may come in a later page than one with a higher Seq, also of
	// the same message or subject: who keeps the last state compares Seq. A page has at most
	// 500 entries, and ends behind the one with which they hold 1 MiB. It is project's, with
	// all that is in it.
	//
	// Project blocks until ctx ends (nil), project fails or panics (its error), the
	// follower is forgotten (ErrNotFound), or the store is closed. It writes nothing of the
	// page then. While the disk is full, or the database is away, it waits. Others are not
	// concerned.
	//
	// Several processes may follow under one name: the page of one is written, the others'
	// are dropped.
	Project(ctx context.Context, f Follower, project func(ctx context.Context, page []Entry) ([]Row, error)) error

	// Forget ends a follower, so that entries need not be kept for it. ErrNotFound: there is
	// none of this name.
	Forget(ctx context.Context, follower string) error

	// Followers lists all, by name.
	Followers(ctx context.Context) ([]FollowerInfo, error)

	// Append writes entries of the kind Called, all or none, if anything follows.
	// ErrInvalid: CheckEntries.
	Append(ctx context.Context, entries ...Entry) error
}

// Follower is who reads the journal. Its entries are kept until it has read them:
// Forget one that will not come back.
type Follower struct {
	Name string
	// FromStart lets a new follower begin with the oldest entry that is there. Otherwise
	// it begins with the next one; of a transaction that is open meanwhile it may miss
	// what that has written. One that is known goes on where it was.
	FromStart bool
	// Resume is called before the first page, and before each page where what project
	// has returned before is perhaps not what stands: a write has failed, another process
	// has followed under the name, or the database went back. Between two of its calls all rows that
	// project returned are committed when project is called again. So what project must
	// know of its own rows it reads here, and keeps in memory. Nil: nothing.
	Resume func(ctx context.Context) error
}

// FollowerInfo is how far a follower has come.
type FollowerInfo struct {
	Name string
	// Unread is when the first entry was written that it has yet to read; zero: it has
	// read all.
	Unread time.Time
}

// Row is one row of a table that a store keeps for a feature: a pointer to a struct of
// package rows. A row takes the place of the one that has its key.
type Row interface {
	// Table is the name of its table, in both stores.
	Table() string
}

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

// What entries may hold that are appended: how many there are in one call, and how many
// bytes each has.
const (
	MaxEntries = 100
	MaxSubject = 1 << 10
	MaxDetail  = 4 << 10
)

// CheckEntries says what of entries that are to be appended no journal takes. They have
// a Kind, Subject, Outcome, Code, Error, Actor and Detail, and nothing else: Seq and At are
// the store's. The error is ErrInvalid.
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
