package httpapi

import (
	"errors"
	"net/http"
	"slices"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/internal/gate"
)

// Server answers the operator API of one node. The zero AuthRequired lets in everybody who can connect. Its
// fields are set before Handler is called and not changed afterwards.
type Server struct {
	*admin.Service

	MaxBodies int64 // bytes of the bodies of all requests in hand; zero: 64 MiB

	// AuthRequired makes every request need a token. Without it, whoever can connect may do everything, as
	// "local": use that only for a loopback listener or a socket. Requests of foreign web pages are refused
	// then.
	AuthRequired bool
	// Closed reports whether every request needs a token or a session, without AuthRequired, since there are people
	// who sign in. Nil: never. It is asked for every request, and must not block.
	Closed func() bool
	// AllowedHosts are names that a request without a token may be addressed to, in addition to those of the
	// loopback. If there is one, any IP address is allowed as well: the name of a foreign page is never an IP
	// address.
	AllowedHosts []string
	// Anybody, without AuthRequired, also accepts what a proxy has passed on. Otherwise such a request needs
	// a token: it only looks as if it came from this machine.
	Anybody bool

	// Mounts are routes of other packages on the same listener, behind the same gate. A wrong path or method
	// gets the same answers.
	Mounts []Mount
	// Page shows a refusal to a person, for mounts that are pages. Nil: with a problem document.
	Page func(w http.ResponseWriter, r *http.Request, p *api.Problem)
}

// Mount is a route of another package. Exactly one of Right, Signed and Open says who may ask. A caller whose
// scope is narrowed is refused, unless the mount is Scoped.
type Mount struct {
	Pattern string // as http.ServeMux reads it: "GET /metrics"
	Handler http.Handler
	Right   api.Right // what a token needs
	// Signed requests prove their origin to the handler. The guard against web pages does not check the name
	// that they are addressed to: a proxy passes on its own.
	Signed bool
	// Open is for everybody, without a token.
	Open bool
	// Long is an answer that takes as long as it needs, such as a stream of events: the server's time limits
	// for a request do not end it. It cannot be used with Open.
	Long bool

	Operation string // as the audit log calls it when somebody is refused; empty: the pattern
	Scoped    bool   // the handler keeps to the caller's scope
	Page      bool   // it is for a person in a browser: its refusals are pages
	MaxBody   int64  // bytes of a body, for which room is held; zero: no room is held
}

// Handler returns the API. The error holds every fault of the Server.
func (s *Server) Handler() (http.Handler, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	b := newBuilder(s.Service)
	for _, resource := range []func(*builder){
		messages, decisions, operations, inbox, destinations, notifying, notifications, copyDecisions, channels, lists, recipients, topics, subscriptions, schedule, events, resends, tokens, persons, activities, live, journal, node, diagnostics, bulks,
	} {
		resource(b)
	}
	if s.Central != nil {
		sites(b)
		siteCalls(b)
	}
	if s.Vault != nil {
		keys(b)
	}
	if s.Records != nil {
		auditing(b)
	}
	others(b, slices.ContainsFunc(s.Mounts, func(m Mount) bool { return m.Pattern == receive }))
	tokens := gate.Keys{Refuse: s.Refusal, As: admin.As, Denied: s.Denied}
	if s.Tokens != nil {
		tokens.Find = s.Tokens.FindToken
	}
	if s.People != nil {
		tokens.Session, tokens.InSession, tokens.Closed = s.FindSession, admin.InSession, s.Closed
	}
	routes := slices.Concat(b.routes, []gate.Route{{Pattern: "GET /openapi.json", Handler: b.document(), Open: true}})
	for _, m := range s.Mounts {
		routes = append(routes, gate.Route{
			Pattern: m.Pattern, Handler: m.Handler, Right: m.Right, Signed: m.Signed, Open: m.Open, Long: m.Long,
			Operation: m.Operation, Scoped: m.Scoped, Page: m.Page, MaxBody: m.MaxBody,
		})
	}
	settings := gate.Settings{MaxBodies: s.MaxBodies, AuthRequired: s.AuthRequired, AllowedHosts: s.AllowedHosts, Anybody: s.Anybody, Page: s.Page}
	return gate.New(settings, tokens, routes, s.Logger)
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
