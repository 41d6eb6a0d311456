package httpapi

import (
	"errors"
	"net/http"
	"slices"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/internal/gate"
)

// Server answers the operator API of one node. One whose literal does not say
// AuthRequired lets everybody in who can connect. Its fields are set before Handler
// is called and not changed afterwards.
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
	// same gate, with the same answers to a wrong path or method.
	Mounts []Mount
}

// Mount is a route of another package. It says who may ask, by exactly one of
// Role, Signed and Open.
type Mount struct {
	Pattern string // as http.ServeMux reads it: "GET /metrics"
	Handler http.Handler
	Role    api.Role // what a token must be allowed to
	// Signed requests prove where they come from, to the handler. The guard against
	// web pages does not ask by which name they came: a proxy passes on its own.
	Signed bool
	// Open is for anybody, and no token is asked.
	Open bool
	// Long is an answer that goes on for as long as it takes, such as a stream of
	// events: the server's times for a request do not end it. It is not for Open.
	Long bool
}

// Handler returns the API. The error holds every fault of the Server.
func (s *Server) Handler() (http.Handler, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	b := newBuilder(s.Service)
	for _, resource := range []func(*builder){
		messages, decisions, inbox, destinations, notifying, notifications, copyDecisions, channels, lists, recipients, tokens, node, diagnostics,
	} {
		resource(b)
	}
	if s.Central != nil {
		sites(b)
	}
	others(b, slices.ContainsFunc(s.Mounts, func(m Mount) bool { return m.Pattern == receive }))
	keys := gate.Keys{Refuse: s.Refusal, As: admin.As}
	if s.Tokens != nil {
		keys.Find = s.Tokens.FindToken
	}
	routes := slices.Concat(b.routes, []gate.Route{{Pattern: "GET /openapi.json", Handler: b.document(), Open: true}})
	for _, m := range s.Mounts {
		routes = append(routes, gate.Route{Pattern: m.Pattern, Handler: m.Handler, Role: m.Role, Signed: m.Signed, Open: m.Open, Long: m.Long})
	}
	settings := gate.Settings{MaxBodies: s.MaxBodies, AuthRequired: s.AuthRequired, AllowedHosts: s.AllowedHosts, Anybody: s.Anybody}
	return gate.New(settings, keys, routes, s.Logger)
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
