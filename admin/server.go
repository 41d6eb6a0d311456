package admin

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/serve"
)

// DefaultMaxPayload is how many bytes a payload may have unless a Server says
// otherwise.
const DefaultMaxPayload = 1 << 20

// DefaultMaxBodies is how many bytes the bodies of requests may have together
// unless a Server says otherwise.
const DefaultMaxBodies = 64 << 20

// Server answers the operator API of one node. Its fields are set before
// Handler is called and not changed afterwards; functions in it are called
// concurrently and, but for Backup, must not block.
type Server struct {
	Outbox   holdfast.Outbox
	Enqueuer holdfast.Enqueuer
	Inbox    holdfast.InboxLog
	Tokens   TokenStore // nil: the node keeps no tokens
	Sites    Sites      // nil: the node is no central, and has no such routes

	// Notify keeps notifications, lists and channels, and Channels delivers
	// them: both, or neither where that is another node's part.
	Notify   NotifyStore
	Channels Channels
	// StuckAfter is how long a notification waits before it is shown as stuck,
	// KPIWindow how far back delivered ones are counted. Zero: 10 min and 1 min.
	StuckAfter, KPIWindow time.Duration

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
	// Health is what GET /_rf/health answers; the server adds node, version
	// and counts. Nil: always ok.
	Health func() Health
	// Backup writes a copy of the database into a folder of the node's
	// machine. It returns when that is done, and may take long. Nil: the node
	// cannot. What is wrong with the folder is a FieldError of the field folder.
	Backup func(ctx context.Context, folder string) (path string, size int64, err error)

	// Acknowledge notes that people know of the present history of the database.
	// Nil: there is only one.
	Acknowledge func(ctx context.Context) error

	Node       string // its id
	Source     string // of messages that name none; empty: Node
	Version    string // of the program
	Durability string // the level that an acceptance reports; zero: "local"
	MaxPayload int64  // bytes; zero: DefaultMaxPayload
	MaxBodies  int64  // bytes of all requests' bodies in hand; zero: 64 MiB

	// AuthRequired asks every request for a token. Without it whoever can
	// connect may do everything, as "local": for a loopback listener or a
	// socket only. Requests of foreign web pages are refused then.
	AuthRequired bool
	// AllowedHosts are names, beside those of the loopback, that a request
	// without a token may be addressed to. Where there is one, any IP address is
	// allowed as well: a name of a foreign page is none.
	AllowedHosts []string
	// Anybody, without AuthRequired, takes also what a proxy has passed on.
	// Otherwise that needs a token: it only looks as if it came from this machine.
	Anybody bool

	// Mounts are routes of other packages on the same listener, behind the
	// same guard, with the same answers to a wrong path or method.
	Mounts []Mount

	// Waiters are told of each attempt by the dispatcher; then requests can wait
	// for the first outcome of their message. Nil: none can.
	Waiters *holdfast.Waiters

	// Control pauses and resumes destinations; the dispatcher does. Nil: nobody can.
	Control Control

	// Notifier takes notifications. Nil: this node has none.
	Notifier Notifier

	Logger *slog.Logger // nil: none

	few    *slog.Logger // for what anybody can cause
	watch  *serve.Watch // over tokens that are refused
	bodies *serve.Room
}

// Mount is a route of another package.
type Mount struct {
	Pattern string // as http.ServeMux reads it: "GET /metrics"
	Handler http.Handler
	Role    Role // what a token must be allowed to; zero: no token is asked
	// Signed requests prove where they come from, so that the guard against
	// web pages does not ask by which name they came: a proxy passes on its own.
	Signed bool
}

// Destination is where messages may be sent to.
type Destination struct {
	Name     string
	Category holdfast.Category    // empty: a peer
	TTL      time.Duration        // of a message that gives none; zero: it never expires
	Retry    holdfast.RetryPolicy // of a message that gives none; its zero fields: the default's
	Wait     time.Duration        // for the first outcome, of a request that does not say; zero: none
}

// Handler returns the API. The error holds every fault of the Server.
func (s *Server) Handler() (http.Handler, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	s.few, s.watch, s.bodies = serve.FewLines(s.Logger), new(serve.Watch), serve.NewRoom(cmp.Or(s.MaxBodies, DefaultMaxBodies))
	mux := http.NewServeMux()
	b := &builder{Server: s, api: humago.New(mux, s.config()), strict: map[string]bool{}}
	b.api.UseMiddleware(s.authenticate)
	b.messages()
	b.notifying()
	b.inbox()
	b.destinations()
	b.tokens()
	b.notificationRecords()
	b.channels()
	b.lists()
	if s.Sites != nil {
		b.sites()
	}
	b.backups()
	b.history()
	b.diagnostics()
	b.others()
	if err := b.document(mux); err != nil {
		return nil, err
	}
	for _, m := range s.Mounts {
		mux.Handle(m.Pattern, s.allow(m.Role, m.Handler))
	}
	return s.guard(answerAll(mux)), nil
}

func (s *Server) check() error {
	var faults []error
	need := func(ok bool, name string) {
		if !ok {
			faults = append(faults, errors.New("admin server: "+name))
		}
	}
	need(s.Outbox != nil, "Outbox is nil")
	need(s.Enqueuer != nil, "Enqueuer is nil")
	need(s.Inbox != nil, "Inbox is nil")
	need(s.Destinations != nil, "Destinations is nil")
	need((s.Notify == nil) == (s.Channels == nil), "Notify and Channels go together, and one of them is nil")
	need(s.StuckAfter >= 0 && s.KPIWindow >= 0, "StuckAfter or KPIWindow is negative")
	need(s.Node != "", "Node is empty")
	need(s.MaxPayload >= 0, "MaxPayload is negative")
	need(s.MaxBodies >= 0, "MaxBodies is negative")
	need(!s.AuthRequired || s.Tokens != nil, "AuthRequired without Tokens would lock everybody out")
	return errors.Join(faults...)
}

func (s *Server) log() *slog.Logger {
	if s.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.Logger
}

func (s *Server) maxPayload() int64 {
	if s.MaxPayload == 0 {
		return DefaultMaxPayload
	}
	return s.MaxPayload
}

// source is who messages are from that do not say it.
func (s *Server) source() string { return cmp.Or(s.Source, s.Node) }

// destination finds one by name.
func (s *Server) destination(name string) (Destination, bool) {
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

func (s *Server) knows(destination string) bool {
	_, known := s.destination(destination)
	return known
}

// lane finds the lane of a destination.
func (s *Server) lane(name string) (holdfast.LaneStatus, bool) {
	l, known := s.laneNow(name)
	return l, known && l.Destination != ""
}

// laneNow is what Dispatcher.Lane says. Without any lane the dispatcher has yet
// to run.
func (s *Server) laneNow(name string) (l holdfast.LaneStatus, known bool) {
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

// builder adds routes to the API while it is made.
type builder struct {
	*Server
	api    huma.API
	strict map[string]bool // schemas of requests: what they do not list is refused

	// changing is held by who changes a list or channel, from the look at what
	// there is until it is stored.
	changing sync.Mutex
}
