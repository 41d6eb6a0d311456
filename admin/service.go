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
	"github.com/holdfast-mq/holdfast/admin/api"
)

// DefaultMaxPayload is how many bytes a payload may have unless a Service says
// otherwise.
const DefaultMaxPayload = 1 << 20

// Service is what one node lets operators ask and do. Messages, Inbox,
// Destinations, Notifications, Channels, Lists, Tokens, Sites and Node do it. Its
// fields are set before it is used and not changed afterwards; functions in it
// are called concurrently and, but for Backup, must not block.
type Service struct {
	Outbox   holdfast.Outbox
	Enqueuer holdfast.Enqueuer
	Inbox    holdfast.InboxLog
	Tokens   TokenStore // nil: the node keeps no tokens
	Central  Central    // nil: the node is no central, and has no sites

	// Notify keeps notifications, Book lists and channels, and Channels delivers:
	// all of them, or none where that is another node's part.
	Notify   NotificationLog
	Book     BookStore
	Channels ChannelOffice
	// StuckAfter is how long a notification waits before it is shown as stuck,
	// KPIWindow how far back delivered ones are counted. Zero: 10 min and 1 min.
	StuckAfter, KPIWindow time.Duration

	// Calls is told of each call that may change something, but for what is sent. Nil:
	// nobody is.
	Calls CallLog

	// Destinations are those that messages may be sent to, with what holds
	// for a message that does not say otherwise.
	Destinations func() []Destination
	// Destination is one of them by name, for a node that has many. Nil: it is
	// looked for among all.
	Destination func(name string) (d Destination, known bool)
	// Lanes tells how the lanes of the destinations fare; Dispatcher has it.
	// Nil: nobody knows.
	Lanes func() []holdfast.LaneStatus
	// Lane is that of one destination, as Dispatcher.Lane is. Nil: it is looked
	// for among all.
	Lane func(destination string) (l holdfast.LaneStatus, known bool)
	// Health is what GET /_rf/health answers; Node adds node, version
	// and counts. Nil: always ok.
	Health func() api.Health
	// Backup writes a copy of the database into a folder of the node's
	// machine. It returns when that is done, and may take long. Nil: the node
	// cannot. What is wrong with the folder is a FieldError of the field folder.
	Backup func(ctx context.Context, folder string) (path string, size int64, err error)

	// Acknowledge notes that people know of the present history of the database.
	// Nil: there is only one.
	Acknowledge func(ctx context.Context) error

	Name       string // the node's id
	Source     string // of messages that name none; empty: Name
	Version    string // of the program
	Durability string // the level that an acceptance reports; zero: "local"
	MaxPayload int64  // bytes; zero: DefaultMaxPayload

	// Waiters are told of each attempt by the dispatcher; then requests can wait
	// for the first outcome of their message. Nil: none can.
	Waiters *holdfast.Waiters

	// Control pauses and resumes destinations; the dispatcher does. Nil: nobody can.
	Control Control

	// Notifier takes notifications. Nil: this node has none.
	Notifier Notifier

	Logger *slog.Logger // nil: none

	// changing is held by who changes a list or channel, from the look at what
	// there is until it is stored.
	changing sync.Mutex
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
	need((s.Notify == nil) == (s.Channels == nil) && (s.Book == nil) == (s.Channels == nil), "Notify, Book and Channels go together, and one of them is nil")
	need(s.StuckAfter >= 0 && s.KPIWindow >= 0, "StuckAfter or KPIWindow is negative")
	need(s.Name != "", "Name is empty")
	need(s.MaxPayload >= 0, "MaxPayload is negative")
	return errors.Join(faults...)
}

// Log is the Logger, or a silent one.
func (s *Service) Log() *slog.Logger {
	if s.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.Logger
}

// LargestPayload is how many bytes a payload may have.
func (s *Service) LargestPayload() int64 { return cmp.Or(s.MaxPayload, DefaultMaxPayload) }

// Program is the version of the program, as it is shown.
func (s *Service) Program() string { return cmp.Or(s.Version, "dev") }

// From is who messages and notifications are from that do not say it.
func (s *Service) From() string { return cmp.Or(s.Source, s.Name) }

// destination finds one by name.
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

// laneNow is what Dispatcher.Lane says. Without any lane the dispatcher has yet
// to run.
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

// callBound is for how long an answer waits for the journal.
const callBound = 2 * time.Second

// Called tells Calls of a call that has ended: which operation, about what, and what
// came of it.
func (s *Service) Called(ctx context.Context, operation, subject string, result error) {
	if s.Calls == nil {
		return
	}
	e := holdfast.Entry{Kind: holdfast.Called, Code: operation, Subject: api.Clip(subject), Actor: api.Clip(Actor(ctx)), Outcome: holdfast.Succeeded}
	if result != nil {
		e.Outcome, e.Error = holdfast.Transient, "the node failed"
		if p, ok := errors.AsType[*api.Problem](result); ok {
			e.Error = api.Clip(p.Detail)
			if p.Status < 500 {
				e.Outcome = holdfast.Permanent
			}
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callBound)
	defer cancel()
	if err := s.Calls.Append(ctx, e); err != nil {
		s.Log().LogAttrs(ctx, slog.LevelWarn, "a call of the API is not in the journal", slog.String("operation", operation), slog.String("actor", e.Actor), slog.Any("error", err))
	}
}

type actorKey struct{}

// As is a context in which name asks: what it does is recorded as theirs.
func As(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, actorKey{}, name)
}

// Actor is who asks: api.Local where nobody is said.
func Actor(ctx context.Context) string {
	name, _ := ctx.Value(actorKey{}).(string)
	return cmp.Or(name, api.Local)
}
