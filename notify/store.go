package notify

import (
	"context"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Store keeps notifications beside the messages that deliver them. Every method is
// atomic and may be called concurrently. The store owns the clock. storetest holds the
// suite that a store must pass.
//
// A notification is named by its site and its id, as a message of the inbox is
// by its source and its id: two sites may use one id for two notifications.
// It is a bundle (BundleOf), with one message per channel, whose destination begins with
// LanePrefix. The first has the id that is its Key; the row of a copy has
// the same seq as its message, so that state, failures and history are the
// message's, and are written once, as is the text, which is in the bundle's payload
// (Text). When a message is purged, its row keeps what it was. The bundle goes with
// the rows of its last copy (PurgeNotifications).
type Store interface {
	holdfast.Bundler

	// Targets returns what became of the recipients of one message so far.
	Targets(ctx context.Context, message holdfast.ID) ([]Target, error)
	// RecordTargets writes what became of recipients of one message, durably, or
	// returns ErrNotFound. A recipient that has accepted stays so. Calls share
	// commits.
	RecordTargets(ctx context.Context, message holdfast.ID, list ...Target) error

	// Notification returns the copies of one notification, the first copy
	// first, with their targets and the histories of their messages, or
	// ErrNotFound.
	Notification(ctx context.Context, site string, id holdfast.ID) ([]Record, error)
	// NotificationSites are the sites, by name, of which a notification of this
	// id is kept.
	NotificationSites(ctx context.Context, id holdfast.ID) ([]string, error)
	// Notifications returns one page of copies, newest first, without bodies,
	// targets and histories.
	Notifications(ctx context.Context, q Query) (Page, error)
	// KPIs computes the numbers of NO-17 from the tables, of all sites together
	// and of each that has any.
	KPIs(ctx context.Context, stuckAfter, window time.Duration) (all KPIs, sites map[string]KPIs, err error)
	// PurgeNotifications deletes notifications of which each copy ended longer ago
	// than keep and whose message is purged, a page at a time, and says whether
	// more wait (NO-15). It counts copies.
	PurgeNotifications(ctx context.Context, keep time.Duration) (purged int, more bool, err error)
}

// BookStore keeps channels and lists, as a Store keeps notifications; nodestore.Book is one.
type BookStore interface {
	// Book returns all channels and lists; BookVersion its version alone.
	Book(ctx context.Context) (Book, error)
	BookVersion(ctx context.Context) (int64, error)
	// PutChannel and PutList make one, whose Version is zero, or replace the one
	// of that Version: so nobody overwrites what another node has changed
	// meanwhile. Delete… end the one of that version, or return ErrNotFound.
	// ErrState: there is another one by now, or none any more; nothing was
	// changed.
	PutChannel(ctx context.Context, c Channel, actor string) error
	DeleteChannel(ctx context.Context, name string, version int64, actor string) error
	PutList(ctx context.Context, l List, actor string) error
	DeleteList(ctx context.Context, name string, version int64, actor string) error
}

// Target is what became of one recipient of one message.
type Target struct {
	Channel, Address string
	Name             string
	Result           Result
	Code, Text       string
	Receipt          string
	Maybe            bool
	Attempts         int
	Cycle            int // of the message, in which it was asked last
	Server, TLS      string
	Truncated        bool
	At               time.Time // of the last attempt; set by the store
}

// Record is one copy of a notification as people see it.
type Record struct {
	Notification Notification
	Message      holdfast.ID // of the copy
	Channel      string      // empty: its list led nowhere when it came
	Seq          int64
	Status       Status
	Reason       holdfast.Reason // of a parked one
	Failures     int
	Tries        int
	Cycle        int
	LastError    string
	Created      time.Time // at central
	LastAttempt  time.Time // zero: never tried
	NextAttempt  time.Time // zero: none is planned
	Ended        time.Time // delivered, parked or discarded; zero: not yet
	Discarding   bool      // it was discarded while it was in hand, and ends when the attempt has
	Stuck        bool      // waits longer than the query's StuckAfter
	Targets      []Target
	History      []holdfast.Entry
}

// Query narrows Notifications. Zero fields do not narrow.
type Query struct {
	Status             []Status
	Channel, List      string
	Type, Site, Script string
	From, To           time.Time // of Created; To is excluded
	Subject            string    // words, all of which are in the subject, in any case
	StuckAfter         time.Duration
	OnlyStuck          bool
	Limit              int    // 1 to 500; zero: 50
	After              string // Page.Next of the page before
}

// Page is one page of copies.
type Page struct {
	Records []Record
	Next    string // empty: no more
}

// KPIs are the numbers of NO-17.
type KPIs struct {
	Depth     int64 // pending and retrying
	Stuck     int64 // of them, those that wait longer than stuckAfter
	Parked    int64
	Delivered int64         // in the window
	Oldest    time.Duration // that a pending or retrying one has waited; zero: there is none
}
