package notify

import (
	"context"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Store keeps notifications together with the messages that deliver them. Every method is atomic and
// may be called concurrently. Time is the store's clock. storetest has the suite that a store must
// pass.
//
// A notification is identified by its site and its id, as an inbox message is by source and id: two
// sites may use the same id. It is a bundle (BundleOf) with one message per channel, whose
// destination begins with LanePrefix. The first message's id is the notification's Key. The row of
// a copy has the same seq as its message. So state, failures and history are written only once, in
// the message. So is the text, which is in the bundle's payload (see Text). When a message is
// purged, the row of the copy keeps its last values. The bundle goes with the rows of its copies
// (PurgeNotifications).
type Store interface {
	holdfast.Bundler

	// Targets returns the outcomes of the recipients of one message so far.
	Targets(ctx context.Context, message holdfast.ID) ([]Target, error)
	// RecordTargets writes outcomes of recipients of one message durably, or returns ErrNotFound. A
	// recipient that has accepted keeps that outcome. Calls share commits.
	RecordTargets(ctx context.Context, message holdfast.ID, list ...Target) error

	// Notification returns the copies of one notification, the first copy first, with their targets
	// and the histories of their messages, or ErrNotFound.
	Notification(ctx context.Context, site string, id holdfast.ID) ([]Record, error)
	// NotificationSites returns the sites, sorted, that have a notification with this id.
	NotificationSites(ctx context.Context, id holdfast.ID) ([]string, error)
	// Notifications returns one page of copies, newest first, without bodies, targets and
	// histories.
	Notifications(ctx context.Context, q Query) (Page, error)
	// KPIs computes the numbers of NO-17 from the tables, for all sites together and for each site
	// with notifications.
	KPIs(ctx context.Context, stuckAfter, window time.Duration) (all KPIs, sites map[string]KPIs, err error)
	// PurgeNotifications deletes notifications whose copies all ended longer ago than keep and
	// whose messages are purged. It deletes one page and reports whether more wait (NO-15). It
	// counts copies.
	PurgeNotifications(ctx context.Context, keep time.Duration) (purged int, more bool, err error)
}

// DirectoryStore keeps channels and lists; nodestore.Directory implements it. Every method is atomic and may
// be called concurrently.
type DirectoryStore interface {
	// Directory returns all channels and lists; DirectoryVersion returns only its version.
	Directory(ctx context.Context) (Directory, error)
	DirectoryVersion(ctx context.Context) (int64, error)
	// PutChannel and PutList make a channel or list if its Version is zero. Otherwise they replace
	// the one with that Version, so that nobody overwrites a change of another node. DeleteChannel
	// and DeleteList remove the one with that version, or return ErrNotFound. ErrState means that
	// the version is another one by now, or that it is gone; nothing was changed.
	PutChannel(ctx context.Context, c Channel, actor string) error
	DeleteChannel(ctx context.Context, name string, version int64, actor string) error
	PutList(ctx context.Context, l List, actor string) error
	DeleteList(ctx context.Context, name string, version int64, actor string) error
}

// Target is the outcome of one recipient of one message.
type Target struct {
	Channel, Address string
	Name             string
	Result           Result
	Code, Text       string
	Receipt          string
	Maybe            bool
	Attempts         int
	Cycle            int // cycle of the message in which the recipient was last asked
	Server, TLS      string
	Truncated        bool
	At               time.Time // of the last attempt; set by the store
}

// Record is one copy of a notification, as people see it.
type Record struct {
	Notification Notification
	Message      holdfast.ID // of the copy
	Channel      string      // empty: its list had no channel when it came
	Seq          int64
	Status       Status
	Reason       holdfast.Reason // if it is parked
	Failures     int
	Tries        int
	Cycle        int
	LastError    string
	Created      time.Time // at central
	LastAttempt  time.Time // zero: never tried
	NextAttempt  time.Time // zero: none is planned
	Ended        time.Time // delivered, parked or discarded; zero: not yet
	Discarding   bool      // it was discarded while in hand, and ends with its attempt
	Stuck        bool      // it waits longer than the query's StuckAfter
	Targets      []Target
	History      []holdfast.Entry
}

// Query selects Notifications. Zero fields select everything.
type Query struct {
	Status             []Status
	Channel, List      string
	Type, Site, Script string
	From, To           time.Time // of Created; To is excluded
	Subject            string    // words that must all be in the subject, in any case
	StuckAfter         time.Duration
	OnlyStuck          bool
	Limit              int    // 1 to 500; zero: 50
	After              string // Page.Next of the page before
}

// Page is one page of copies.
type Page struct {
	Records     []Record
	Next        string    // empty: no more
	LookedUntil time.Time // when the oldest copy came that was looked at so far; zero: the page is full, or the last one
}

// KPIs are the numbers of NO-17.
type KPIs struct {
	Depth     int64 // pending and retrying
	Stuck     int64 // of those, the ones that wait longer than stuckAfter
	Parked    int64
	Delivered int64         // in the window
	Oldest    time.Duration // longest wait of a pending or retrying one; zero: there is none
}
