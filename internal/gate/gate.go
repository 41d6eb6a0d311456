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

// DefaultMaxBodies is how many bytes the bodies of requests may have together
// unless Settings say otherwise.
const DefaultMaxBodies = 64 << 20

// Settings say who is let in.
type Settings struct {
	MaxBodies int64 // bytes of all requests' bodies in hand; zero: 64 MiB

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
}

// Keys is what a gate knows of those who ask.
type Keys struct {
	// Find returns the token with this hash, or holdfast.ErrNotFound; it is called
	// for every request. Nil: there are no tokens.
	Find func(ctx context.Context, hash [32]byte) (name, role string, err error)
	// Refuse tells, and logs, why Find could not.
	Refuse func(ctx context.Context, log *slog.Logger, doing string, err error) *api.Problem
	// As is a context in which name asks.
	As func(ctx context.Context, name string) context.Context
}

// Route is what is behind the gate. It says who may ask, by exactly one of Role,
// Signed and Open.
type Route struct {
	Pattern string // as http.ServeMux reads it: "GET /metrics"
	Handler http.Handler
	Role    api.Role // what a token must be allowed to
	// Signed requests prove where they come from, to the handler. The guard against
	// web pages does not ask by which name they came: a proxy passes on its own.
	Signed bool
	// Open is for anybody, and no token is asked.
	Open bool
	// Long is an answer that goes on for as long as it takes, such as a stream of
	// events: the server's times for a request do not end it. Strangers get none.
	Long bool
	// MaxBody is how many bytes a body may have, for which room is held until the
	// answer, or until it was read where that is Long; zero: no room is held.
	MaxBody int64
}

// check refuses what would be open to everybody because somebody forgot to say
// for whom it is.
func (r *Route) check() error {
	said := 0
	for _, way := range []bool{r.Role != "", r.Signed, r.Open} {
		if way {
			said++
		}
	}
	switch {
	case said != 1:
		return fmt.Errorf("route %q: say exactly one of Role, Signed and Open", r.Pattern)
	case r.Role != "" && r.Role.Rank() == 0:
		return fmt.Errorf("route %q: there is no role %q", r.Pattern, r.Role)
	case r.Long && r.Open:
		return fmt.Errorf("route %q: a Long answer to anybody would hold connections for strangers", r.Pattern)
	}
	return nil
}

// gate is one listener's.
type gate struct {
	Settings
	Keys
	Logger *slog.Logger
	few    *slog.Logger // for what anybody can cause
	watch  serve.Watch  // over tokens that are refused
	bodies *serve.Room
	routes []Route
}

// New is a handler of routes behind a gate. Nil log: silent. The error holds every
// fault of the routes; patterns that exclude each other panic, as http.ServeMux
// has it.
func New(s Settings, k Keys, routes []Route, log *slog.Logger) (http.Handler, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	g := &gate{Settings: s, Keys: k, Logger: log, few: serve.FewLines(log), bodies: serve.NewRoom(cmp.Or(s.MaxBodies, DefaultMaxBodies)), routes: routes}
	mux := http.NewServeMux()
	var faults []error
	for _, r := range routes {
		if err := r.check(); err != nil {
			faults = append(faults, err)
			continue
		}
		if r.Long {
			r.Handler = patient(r.Handler)
		}
		if r.Role != "" {
			r.Handler = g.allow(r)
		}
		mux.Handle(r.Pattern, r.Handler)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return g.guard(answerAll(mux)), nil
}

// patient takes the server's time for an answer off a request. Reading needs no such
// thing: a body has times of its own (serve.TimedBody), and once it is read, net/http
// waits for as long as it takes.
func patient(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // a recorder in a test has none
		next.ServeHTTP(w, r)
	})
}
