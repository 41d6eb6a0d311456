package notificaties

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/internal/serve"
)

// Version is the version of the API, and the value of the header API-version.
const Version = "1.0.0"

// DefaultMaxBody is the most bytes of a request's body, unless a Server says otherwise.
const DefaultMaxBody = 1 << 20

// Server answers the Notificaties API. Its fields are set before Handler is called and not changed
// afterwards.
type Server struct {
	Book      *fanout.Book
	Publisher *fanout.Publisher
	// URL begins the absolute links of answers, such as https://example.nl/notificaties: what comes before
	// /api/v1 in them. Empty: scheme and host of the request, and Path.
	URL string
	// Path is the path below which the API is mounted, such as /notificaties; empty: the root.
	Path string
	// Client returns who may ask under a client id.
	Client func(id string) (Client, bool)
	// Authority knows the rights of clients that have no scopes here. Nil: such clients may do nothing.
	Authority *Authority

	// Seal seals the authorization of a subscription whose other settings are set.
	Seal func(sub *fanout.Subscription, secret string) (string, error)
	// Check returns the faults of how a subscription is delivered, each a *holdfast.FieldError. Another error says
	// that the node failed.
	Check func(sub *fanout.Subscription) error
	// Probe posts a body to a subscriber, authorized as its subscription says, and returns the status.
	Probe func(ctx context.Context, sub *fanout.Subscription, body []byte) (status int, err error)
	// Most is how many abonnementen one client may have, and a few more if it makes several at once; zero: without a bound.
	Most int
	// Unprotected accepts callbacks that take requests without authorization.
	Unprotected bool
	// Fetch gets a link for people. Nil: links are not checked.
	Fetch Getter

	// StrictHosts refuses URLs in notifications whose host has no dot, such as http://openzaak:8000, as the
	// upstream does. PlainFaults answers a notification with faults as the upstream does, by an object of
	// lists of texts, in place of a problem document.
	StrictHosts, PlainFaults bool
	// Leeway is how far the clocks of clients may differ from this one.
	Leeway time.Duration
	// Called is told of each call that has ended and was to change something: who called, what, and about
	// what. Nil: nobody is told.
	Called func(ctx context.Context, actor, operation, subject string, result error)
	// MaxBody is the most bytes of a body; zero: DefaultMaxBody. Room is where bodies of known callers are
	// held; nil: without a bound.
	MaxBody int64
	Room    *serve.Room
	Logger  *slog.Logger // nil: nothing is logged

	routes []route
	watch  serve.Watch // limits refused tokens
}

// Getter makes a GET request and returns what was answered. authorization is the value of that header, or
// empty. What is not short is cut off.
type Getter func(ctx context.Context, url, authorization string) (status int, body []byte, err error)

// route is one resource of the API.
type route struct {
	path string // below /api/v1/, with {uuid} for one segment; empty: the index
	// methods that it takes.
	methods map[string]handler
	media   string // of requests; empty: application/json
	open    bool   // it is for everybody, whatever the Accept header says
	suffix  bool   // it may be followed by .json
}

// handler answers one request. An error that is no *Problem says that the node failed.
type handler func(w http.ResponseWriter, r *http.Request) error

// Handler returns the API. It serves all paths below Path.
func (s *Server) Handler() http.Handler {
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	if s.MaxBody == 0 {
		s.MaxBody = DefaultMaxBody
	}
	s.routes = slices.Concat(s.kanaalRoutes(), s.abonnementRoutes(), s.publishRoutes(), s.callbackRoutes(), s.documentRoutes())
	return http.HandlerFunc(s.serve)
}

// base is the path of this version of the API.
const base = "/api/v1/"

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, s.Path)
	if page := reference(path); page != "" && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		showPage(w, page)
		return
	}
	below, ok := strings.CutPrefix(path, base)
	if !ok {
		s.answer(w, r, notFound())
		return
	}
	w.Header().Set("API-version", Version)
	to, id := s.find(below)
	if to == nil {
		s.answer(w, r, notFound())
		return
	}
	r.SetPathValue("uuid", id)
	if err := s.ask(w, r, to); err != nil {
		s.answer(w, r, err)
	}
}

// find returns the route of a path, and its uuid.
func (s *Server) find(below string) (to *route, id string) {
	for i := range s.routes {
		to := &s.routes[i]
		path := below
		if to.suffix {
			path = strings.TrimSuffix(path, ".json")
		}
		before, one := strings.CutSuffix(to.path, "{uuid}")
		if !one {
			if path == to.path {
				return to, ""
			}
			continue
		}
		if id, ok := strings.CutPrefix(path, before); ok && id != "" && !strings.Contains(id, "/") {
			return to, id
		}
	}
	return nil, ""
}

// ask passes a request on to its handler. The order of the checks is that of the upstream: what the caller
// accepts, the method, then in the handler who asks, the query, and the body.
func (s *Server) ask(w http.ResponseWriter, r *http.Request, to *route) error {
	if !to.open && !accepts(r, to.media) {
		return notAcceptable()
	}
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	h := to.methods[method]
	if h == nil {
		w.Header().Set("Allow", to.allow())
		return methodNotAllowed(r.Method)
	}
	return h(w, r)
}

func (to *route) allow() string {
	var list []string
	for m := range to.methods {
		list = append(list, m)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// answer sends a problem.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, err error) {
	p, ok := errors.AsType[*Problem](err)
	if !ok {
		s.Logger.ErrorContext(r.Context(), "notificaties request failed", slog.String("method", r.Method), slog.Any("error", err))
		p = failed()
	}
	p.write(w, s.root(r))
}

// root returns what begins absolute links, without a slash at the end.
func (s *Server) root(r *http.Request) string {
	if s.URL != "" {
		return strings.TrimSuffix(s.URL, "/")
	}
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	return scheme + r.Host + s.Path
}

// link returns the absolute URL of a resource, such as "kanaal/" and a uuid.
func (s *Server) link(r *http.Request, resource string) string { return s.root(r) + base + resource }

// called tells Called what became of a call, and returns that.
func (s *Server) called(r *http.Request, c Client, operation, subject string, result error) error {
	if s.Called != nil {
		s.Called(r.Context(), c.Actor(), operation, subject, result)
	}
	return result
}
