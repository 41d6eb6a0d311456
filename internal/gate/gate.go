package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/internal/serve"
)

// DefaultMaxBodies is the most bytes of the bodies of all requests in hand, unless Settings say otherwise.
const DefaultMaxBodies = 64 << 20

// Settings say who is let in.
type Settings struct {
	MaxBodies int64 // bytes of the bodies of all requests in hand; zero: 64 MiB

	// AuthRequired makes every request need a token. Without it, whoever can connect may do everything, as
	// "local": use that only for a loopback listener or a socket. Requests of foreign web pages are refused
	// then.
	AuthRequired bool
	// AllowedHosts are names that a request without a token may be addressed to, in addition to those of the
	// loopback. If there is one, any IP address is allowed as well: the name of a foreign page is never an IP
	// address.
	AllowedHosts []string
	// Anybody, without AuthRequired, also accepts what a proxy has passed on. Otherwise such a request needs
	// a token: it only looks as if it came from this machine.
	Anybody bool
	// Page shows a refusal to a person, for routes that are pages. Nil: with a problem document, as for all others.
	Page func(w http.ResponseWriter, r *http.Request, p *api.Problem)
}

// Keys is what a gate knows about callers.
type Keys struct {
	// Find returns the token with this hash and its rights (api.ParseGrant), or holdfast.ErrNotFound. It is
	// called for every request. Nil: no tokens exist.
	Find func(ctx context.Context, hash [32]byte) (name, rights string, err error)
	// Refuse turns an error of Find into a problem, and logs it.
	Refuse func(ctx context.Context, log *slog.Logger, doing string, err error) *api.Problem
	// As returns a context in which name asks, who may do this.
	As func(ctx context.Context, name string, may api.Grant) context.Context
	// Session returns the session with this hash, who asks by it, and their rights, or holdfast.ErrNotFound.
	// A request that does not count is made by a page without its person: it does not make the session live longer.
	// Nil: there are no sessions.
	Session func(ctx context.Context, hash [32]byte, counts bool) (id, actor, rights string, err error)
	// InSession returns a context of a request by a session. Nil: nobody asks for that.
	InSession func(ctx context.Context, id string) context.Context
	// Closed reports whether every request needs a token or a session although Settings do not say so, since
	// there are people who sign in. Nil: never.
	Closed func() bool
	// Denied is told of each request of a caller who lacks a right, in the context of As. Nil: nobody is told.
	Denied func(ctx context.Context, operation string, p *api.Problem)
}

// Route is a route behind the gate. Exactly one of Right, Signed and Open says who may ask.
type Route struct {
	Pattern   string // as http.ServeMux reads it: "GET /metrics"
	Operation string // for Keys.Denied; empty: the pattern
	Handler   http.Handler
	Right     api.Right // what a token needs
	// Portal is the right that a subscriber needs instead. Such a route is Scoped. Empty: it is not for subscribers.
	Portal api.Right
	// Scoped: the handler keeps to the caller's scope. Any other route refuses a caller whose scope is narrowed.
	Scoped bool
	// Signed requests prove their origin to the handler. The guard against web pages does not check the name
	// that they are addressed to: a proxy passes on its own.
	Signed bool
	// Open is for everybody, without a token.
	Open bool
	// Long is an answer that takes as long as it needs, such as a stream of events: the server's time limits
	// for a request do not end it. One to a GET ends within seconds of the caller's token. It cannot be used with
	// Open.
	Long bool
	// Page is a route for a person in a browser: its refusals are pages (Settings.Page).
	Page bool
	// MaxBody is the most bytes of a body. Room for it is held until the answer, or with Long until the body
	// was read. Zero: no room is held.
	MaxBody int64
}

// check refuses a route that would be open to everybody because somebody forgot to say who may ask.
func (r *Route) check() error {
	said := 0
	for _, way := range []bool{r.Right != "", r.Signed, r.Open} {
		if way {
			said++
		}
	}
	switch {
	case said != 1:
		return fmt.Errorf("route %q: say exactly one of Right, Signed and Open", r.Pattern)
	case r.Right != "" && !r.Right.Known():
		return fmt.Errorf("route %q: there is no right %q", r.Pattern, r.Right)
	case r.Portal != "" && (!r.Scoped || !r.Portal.Known()):
		return fmt.Errorf("route %q: one for subscribers must keep to the scope, and its right must be known", r.Pattern)
	case r.Long && r.Open:
		return fmt.Errorf("route %q: a Long answer to anybody would hold connections for strangers", r.Pattern)
	}
	return nil
}

// gate is the gate of one listener.
type gate struct {
	Settings
	Keys
	Logger  *slog.Logger
	few     *slog.Logger // for lines that anybody can cause
	watch   serve.Watch  // limits refused tokens
	bodies  *serve.Room
	portal  serve.Pace[string] // of each token of a subscriber
	foreign http.CrossOriginProtection
	routes  []Route
	mux     *http.ServeMux
}

// How many requests a token of a subscriber may make. Each node counts for itself.
const (
	portalPerSecond = 2
	portalBurst     = 60
)

// New returns a handler of routes behind a gate. Nil log: silent. The error holds every fault of the routes.
// Patterns that exclude each other panic, as in http.ServeMux.
func New(s Settings, k Keys, routes []Route, log *slog.Logger) (http.Handler, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	g := &gate{Settings: s, Keys: k, Logger: log, few: serve.FewLines(log), bodies: serve.NewRoom(cmp.Or(s.MaxBodies, DefaultMaxBodies)), routes: routes}
	g.portal.PerSecond, g.portal.Burst = portalPerSecond, portalBurst
	mux := http.NewServeMux()
	g.mux = mux
	var faults []error
	for _, r := range routes {
		if err := r.check(); err != nil {
			faults = append(faults, err)
			continue
		}
		if r.Long {
			r.Handler = patient(r.Handler)
		}
		if r.Right != "" {
			r.Handler = g.allow(r)
		}
		mux.Handle(r.Pattern, r.Handler)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return g.guard(answerAll(mux)), nil
}

// patient removes the server's time limit for an answer from a request. Reading needs nothing like it: a body
// has its own time limits (serve.TimedBody), and once it is read, net/http waits as long as it takes.
func patient(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // fails only for a recorder in a test
		next.ServeHTTP(w, r)
	})
}
