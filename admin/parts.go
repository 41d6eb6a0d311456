package admin

import (
	"context"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/link"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/track"
)

// Destination is a place that messages may be sent to.
type Destination struct {
	Name     string
	Category holdfast.Category    // empty: a peer
	TTL      time.Duration        // default of a message; zero: it never expires
	Retry    holdfast.RetryPolicy // default of a message; its zero fields: DefaultRetry
	Wait     time.Duration        // default time that a request waits for the first outcome; zero: it does not wait
}

// Control is what people may do to a destination. holdfast.Dispatcher implements it.
type Control interface {
	Pause(ctx context.Context, destination, actor string) error
	Resume(ctx context.Context, destination, actor string) error
}

// Notifier is the way of notifications out of a node: at a site to central, elsewhere to their channels. Its
// methods are called concurrently.
type Notifier interface {
	// Submit takes a notification durably. The notification has an id. An id that is known with the same
	// content is a Duplicate, with other content ErrConflict.
	Submit(ctx context.Context, n notify.Notification) (holdfast.Receipt, error)
	// Status returns how a notification stands. An unknown id is ErrNotFound. ErrUnavailable: the
	// notification is at central, which cannot be asked now.
	Status(ctx context.Context, id holdfast.ID) (notify.Standing, error)
}

// NotificationLog tells what became of notifications. It is a part of notify.Store, with
// the same promises.
type NotificationLog interface {
	Notification(ctx context.Context, site string, id holdfast.ID) ([]notify.Record, error)
	NotificationSites(ctx context.Context, id holdfast.ID) ([]string, error)
	Notifications(ctx context.Context, q notify.Query) (notify.Page, error)
	KPIs(ctx context.Context, stuckAfter, window time.Duration) (all notify.KPIs, sites map[string]notify.KPIs, err error)
}

// DirectoryStore keeps channels and lists, with the promises of notify.DirectoryStore. What
// changes one is given the Version
// that the caller has seen, zero for what is new.
type DirectoryStore interface {
	Directory(ctx context.Context) (notify.Directory, error)
	PutChannel(ctx context.Context, c notify.Channel, actor string) error
	DeleteChannel(ctx context.Context, name string, version int64, actor string) error
	PutList(ctx context.Context, l notify.List, actor string) error
	DeleteList(ctx context.Context, name string, version int64, actor string) error
}

// ChannelOffice delivers over channels. Check and CheckRecipient do not block: a list of ten thousand calls
// CheckRecipient for each recipient.
type ChannelOffice interface {
	// Check reports everything that is wrong with a channel, as FieldErrors.
	Check(c notify.Channel) error
	// CheckRecipient reports what is wrong with an address on a channel.
	CheckRecipient(c notify.Channel, address string) error
	// Status returns how the channels fare in this process, by name. A channel that it does not serve has no entry.
	Status() map[string]holdfast.LaneStatus
	// Resume makes a held channel go on at once. ErrNotFound: no channel has this name. ErrState: it is disabled.
	Resume(ctx context.Context, name string) error
	// Test sends one test notification and keeps nothing of it. An error that wraps ErrNotFound or ErrInvalid
	// is the caller's mistake.
	Test(ctx context.Context, name, address string) (notify.Report, error)
}

// Tracker says what became of calls and writes. *site.Site implements it. Its methods may be called concurrently.
type Tracker interface {
	// Status returns one operation. An id that is not known, or not any more, is ErrNotFound.
	Status(ctx context.Context, id holdfast.ID) (track.Operation, error)
	// Operations returns a page, newest first.
	Operations(ctx context.Context, f track.Filter) (track.Page, error)
}

// TokenStore keeps tokens as hashes of their secrets. Its methods are atomic and may be called concurrently.
// It uses plain types, so that a store need not import this package: rights is a text, as api.Grant writes it.
type TokenStore interface {
	// CreateToken keeps a token, which ends after lasts by the store's clock; zero: it does not end. If the
	// name is taken, the error is holdfast.ErrConflict. A token of a subscriber goes with its subscription; if that has
	// gone, the error is holdfast.ErrNotFound.
	CreateToken(ctx context.Context, name, rights string, lasts time.Duration, hash [32]byte, actor string) error
	// DeleteToken ends a token. If no token has the name, the error is holdfast.ErrNotFound. If nobody would be left
	// who can operate the node, it is people.ErrNoAdmin, unless it is forced.
	DeleteToken(ctx context.Context, name string, force bool, actor string) error
	// FindToken returns the token with this hash, or holdfast.ErrNotFound if there is none or its time is
	// over. It is called for every request, and may record the time.
	FindToken(ctx context.Context, hash [32]byte) (name, rights string, err error)
	// EachToken calls yield for each token, by name. lastUsed is zero if the token was never used, or its use
	// was not recorded; until is zero if it does not end, and ended says that it has.
	EachToken(ctx context.Context, yield func(name, rights string, created, lastUsed, until time.Time, ended bool)) error
}

// Central is what a central node knows about its sites and may ask them. *link.Central implements it.
type Central interface {
	Add(ctx context.Context, name string, actor string) (token string, err error)
	Rotate(ctx context.Context, name string, now bool, actor string) (token string, err error)
	Revoke(ctx context.Context, name string, actor string) error
	Sites(ctx context.Context) ([]link.SiteInfo, error)
	Outbox(site string) holdfast.Outbox
}
