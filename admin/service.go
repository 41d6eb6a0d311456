package admin

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/activity"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/bulk"
	"github.com/holdfast-mq/holdfast/link"
	"github.com/holdfast-mq/holdfast/link/sites"
	"github.com/holdfast-mq/holdfast/minutes"
	"github.com/holdfast-mq/holdfast/people"
)

// DefaultMaxPayload is the largest payload in bytes, unless a Service sets another limit.
const DefaultMaxPayload = 1 << 20

// Service is what operators may ask of one node and do there. Messages, Inbox, Destinations, Notifications,
// Channels, Lists, Tokens, Sites, Activity and Node use it. Its fields are set before it is used and not changed
// afterwards. Functions in it are called concurrently and must not block, except Backup.
type Service struct {
	Outbox   holdfast.Outbox
	Enqueuer holdfast.Enqueuer
	Inbox    holdfast.InboxLog
	Tokens   TokenStore   // nil: the node keeps no tokens
	People   people.Store // nil: the node keeps no people, and nobody signs in
	Central  Central      // nil: the node is not a central, and has no sites
	Mirror   sites.Calls  // of a central: what its sites say of their operations; nil: nothing

	// Notify keeps notifications, Book lists and channels, and Channels delivers:
	// all of them, or none where that is another node's part.
	Notify    NotificationLog
	Directory DirectoryStore
	Channels  ChannelOffice
	// Vault seals the secrets of channels. Nil: channels name their secrets.
	Vault Vault
	// StuckAfter is how long a notification waits before it is shown as stuck; zero: 10 min. KPIWindow is how
	// far back delivered ones are counted; zero: 1 min.
	StuckAfter, KPIWindow time.Duration

	// SessionLife is how long a session of a person lives; zero: DefaultSession. SessionIdle is how long it lives
	// without a request; zero: DefaultIdle.
	SessionLife, SessionIdle time.Duration
	// Peopled is told that there is a person now. Nil: nobody is.
	Peopled func()
	// Factors seals the secrets of second factors. Nil: there are none.
	Factors FactorSealer

	// Track finds operations. Nil: the node knows none.
	Track Tracker
	// Activity keeps what happened to messages. Nil: nobody does. ActivityOff: nothing is written any more.
	Activity    activity.Store
	ActivityOff bool
	// Bulks keeps bulk actions, which a bulk.Runner runs with Bulk.Do. Nil: nobody does.
	Bulks bulk.Store
	// Minutes keeps what nodes did in each minute. Nil: nobody does.
	Minutes minutes.Store
	// Stopping is closed when the node stops, so that answers without an end do. Nil: they end with their requests.
	Stopping <-chan struct{}

	// Journal is kept for its followers. Nil: the node keeps none.
	Journal JournalKeeper
	// Calls is told of each call that changes something or reads content, except of sent messages (AU-09).
	// Nil: nobody is told.
	Calls CallLog

	// Records is what can be asked of the audit log. AuditLag returns how far the log is behind what has
	// happened, and AuditFailures how often it could not be written since the start. All of them, or none.
	Records       AuditRecords
	AuditLag      func(ctx context.Context) (time.Duration, error)
	AuditFailures func() int64
	// AuditLog is the node's own audit log. Nil: the node keeps none.
	AuditLog *audit.Log
	// Verifier verifies it. Nil: the node does not.
	Verifier AuditVerifier
	// Keeps is how long the node keeps what.
	Keeps []api.Kept
	// Shipping tells how a site's audit log gets to central. Nil: the node is no site.
	Shipping func() link.Telemetry

	// Destinations lists where messages may be sent to, with the defaults for a message.
	Destinations func() []Destination
	// Destination finds one of them by name, for a node that has many. Nil: Destinations is searched.
	Destination func(name string) (d Destination, known bool)
	// Lanes tells how the lanes of the destinations fare; use Dispatcher.Status. Nil: unknown.
	Lanes func() []holdfast.LaneStatus
	// Lane tells how one lane fares, as Dispatcher.Lane does. Nil: Lanes is searched.
	Lane func(destination string) (l holdfast.LaneStatus, known bool)
	// Health is the answer of GET /_rf/health; Node adds node, version and counts. Nil: always ok.
	Health func() api.Health
	// Backup writes a copy of the database into a folder of the node's machine. It returns when that is done,
	// and may take long. A fault of the folder is a FieldError of the field folder. Nil: the node cannot make
	// backups.
	Backup func(ctx context.Context, folder string) (path string, size int64, err error)

	// Acknowledge records that people know about the present history of the database. Nil: there is only one history.
	Acknowledge func(ctx context.Context) error

	Name       string // the node's id
	Source     string // for messages that name none; empty: Name
	Version    string // of the program
	Durability string // the level that an acceptance reports; zero: "local"
	MaxPayload int64  // bytes; zero: DefaultMaxPayload

	// Waiters are told of each attempt by the dispatcher, so that requests can wait for the first outcome of
	// their message. Nil: no request can wait.
	Waiters *holdfast.Waiters

	// Control pauses and resumes destinations; use the Dispatcher. Nil: nobody can.
	Control Control

	// Hub has topics, subscriptions and events. Nil: the node has none.
	Hub *Hub

	// Notifier takes notifications. Nil: this node takes none.
	Notifier Notifier

	Logger *slog.Logger // nil: none

	// changing is held while a list or channel is changed, from reading it to storing it.
	changing  sync.Mutex
	refusals  refusals
	signing   signing
	listeners listeners
	missed    missed
}

// Check returns every fault of the Service.
func (s *Service) Check() error {
	var faults []error
	need := func(ok bool, name string) {
		if !ok {
			faults = append(faults, errors.New("admin: "+name))
		}
	}
	need(s.Outbox != nil, "Outbox is nil")
	need(s.Enqueuer != nil, "Enqueuer is nil")
	need(s.Inbox != nil, "Inbox is nil")
	need(s.Destinations != nil, "Destinations is nil")
	need((s.Notify == nil) == (s.Channels == nil) && (s.Directory == nil) == (s.Channels == nil), "Notify, Directory and Channels go together, and one of them is nil")
	need(s.Records == nil && s.AuditLag == nil && s.AuditFailures == nil || s.Records != nil && s.AuditLag != nil && s.AuditFailures != nil, "Records, AuditLag and AuditFailures go together, and one of them is nil")
	need(s.StuckAfter >= 0 && s.KPIWindow >= 0, "StuckAfter or KPIWindow is negative")
	need(s.Name != "", "Name is empty")
	need(s.MaxPayload >= 0, "MaxPayload is negative")
	return errors.Join(faults...)
}

// Log returns the Logger, or a silent one.
func (s *Service) Log() *slog.Logger {
	if s.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.Logger
}

// LargestPayload returns the largest payload in bytes.
func (s *Service) LargestPayload() int64 { return cmp.Or(s.MaxPayload, DefaultMaxPayload) }

// Program returns the version of the program as it is shown.
func (s *Service) Program() string { return cmp.Or(s.Version, "dev") }

// From returns the source of messages and notifications that name none.
func (s *Service) From() string { return cmp.Or(s.Source, s.Name) }

// destination finds a destination by name.
func (s *Service) destination(name string) (Destination, bool) {
	if s.Destination != nil {
		return s.Destination(name)
	}
	for _, d := range s.Destinations() {
		if d.Name == name {
			return d, true
		}
	}
	return Destination{}, false
}

func (s *Service) knows(destination string) bool {
	_, known := s.destination(destination)
	return known
}

// lane finds the lane of a destination.
func (s *Service) lane(name string) (holdfast.LaneStatus, bool) {
	l, known := s.laneNow(name)
	return l, known && l.Destination != ""
}

// laneNow is Dispatcher.Lane. If no lane exists, the dispatcher has not run yet.
func (s *Service) laneNow(name string) (l holdfast.LaneStatus, known bool) {
	switch {
	case s.Lane != nil:
		return s.Lane(name)
	case s.Lanes == nil:
		return l, false
	}
	all := s.Lanes()
	if i := slices.IndexFunc(all, func(l holdfast.LaneStatus) bool { return l.Destination == name }); i >= 0 {
		return all[i], true
	}
	return l, len(all) > 0
}

// noted logs who changed what.
func (s *Service) noted(ctx context.Context, what string, attrs ...slog.Attr) {
	s.Log().LogAttrs(ctx, slog.LevelInfo, what, append(attrs, slog.String("actor", Actor(ctx)))...) //nolint:sloglint // constant at each call
}
