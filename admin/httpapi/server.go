package httpapi

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/internal/serve"
)

// DefaultMaxBodies is how many bytes the bodies of requests may have together
// unless a Server says otherwise.
const DefaultMaxBodies = 64 << 20

// Server answers the operator API of one node. Its fields are set before
// Handler is called and not changed afterwards.
type Server struct {
	*admin.Service

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

	// Mounts are routes of other packages on the same listener, behind the
	// same guard, with the same answers to a wrong path or method.
	Mounts []Mount

	few    *slog.Logger // for what anybody can cause
	watch  *serve.Watch // over tokens that are refused
	bodies *serve.Room
}

// Mount is a route of another package.
type Mount struct {
	Pattern string // as http.ServeMux reads it: "GET /metrics"
	Handler http.Handler
	Role    api.Role // what a token must be allowed to; zero: no token is asked
	// Signed requests prove where they come from, so that the guard against
	// web pages does not ask by which name they came: a proxy passes on its own.
	Signed bool
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
	if s.Central != nil {
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
	if s.Service == nil {
		return errors.New("admin server: Service is nil")
	}
	faults := []error{s.Check()}
	need := func(ok bool, name string) {
		if !ok {
			faults = append(faults, errors.New("admin server: "+name))
		}
	}
	need(s.MaxBodies >= 0, "MaxBodies is negative")
	need(!s.AuthRequired || s.Tokens != nil, "AuthRequired without Tokens would lock everybody out")
	return errors.Join(faults...)
}

// builder adds routes to the API while it is made.
type builder struct {
	*Server
	api    huma.API
	strict map[string]bool // schemas of requests: what they do not list is refused
}
