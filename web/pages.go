package web

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/internal/gate"
)

// Root is the path of the pages at the node's listener.
const Root = "/ui/"

// Settings say how the pages are shown.
type Settings struct {
	// Base is the path below which a proxy offers the node, such as "/plant-4". The proxy removes it from
	// requests; links begin with it. Empty: the node is at the root.
	Base string
	// Environment is shown on each page, such as "production", so that nobody takes one node for another. Empty:
	// nothing is shown.
	Environment string
	// Tone is the colour of the environment: red, amber, green, blue, violet or grey.
	Tone string
}

// Pages are the operator pages of one node. Methods may be called concurrently.
type Pages struct {
	*admin.Service
	Settings

	assets    map[string]*asset // by path below Root
	names     map[string]string // of the asset with a plain name
	templates *templates
	zippers   sync.Pool
}

// New returns the pages of a node.
func New(s Settings, of *admin.Service) (*Pages, error) {
	s.Base = strings.TrimRight(s.Base, "/")
	p := &Pages{Service: of, Settings: s}
	p.zippers.New = newZipper
	if err := p.loadAssets(); err != nil {
		return nil, fmt.Errorf("operator pages: %w", err)
	}
	var err error
	if p.templates, err = newTemplates(p.funcs()); err != nil {
		return nil, fmt.Errorf("operator pages: %w", err)
	}
	return p, nil
}

// page is one page, or one action of a page.
type page struct {
	pattern   string // method and path below Root: "GET messages/{id}"
	operation string // as the audit log calls it
	right     api.Right
	// content: it shows content, so that the audit log has each look at it (AU-09).
	content bool
	serve   func(r *http.Request) (answer, error)
}

// answer is what a page answers: a view, a redirect or a file. A page that shows its error itself returns both.
type answer interface {
	send(p *Pages, w http.ResponseWriter, r *http.Request)
}

// pages lists all pages and their actions.
func (p *Pages) pages() []page {
	return slices.Concat(p.auditPages(), p.eventPages(), p.sitePages(), []page{
		{"GET {$}", "overview", api.Read, false, p.overview},
		{"GET messages", "list-messages", api.Read, false, p.messages},
		{"POST messages/selected", "decide-messages", api.Operate, false, p.decideSelected},
		{"GET messages/{id}", "get-message", api.Read, true, p.message},
		{"GET messages/{id}/story", "watch-message", api.Read, false, p.story},
		{"GET messages/{id}/payload", "get-message", api.Read, true, p.payload},
		{"POST messages/{id}/retry", "retry-message", api.Operate, false, p.retry},
		{"GET messages/{id}/discard", "ask-discard-message", api.Operate, false, p.askDiscard},
		{"POST messages/{id}/discard", "discard-message", api.Operate, false, p.discard},
		{"POST messages/{id}/run", "run-message", api.Operate, false, p.run},
		{"POST messages/{id}/reschedule", "reschedule-message", api.Operate, false, p.reschedule},
		{"GET destinations", "list-destinations", api.Read, false, p.destinations},
		{"GET destinations/{name}", "get-destination", api.Read, false, p.destination},
		{"POST destinations/{name}/pause", "pause-destination", api.Operate, false, p.pause},
		{"POST destinations/{name}/resume", "resume-destination", api.Operate, false, p.resume},
		{"GET notifications", "list-notifications", api.Read, false, p.notifications},
		{"POST notifications/selected", "decide-notifications", api.Operate, false, p.decideNotifications},
		{"GET notifications/{id}", "get-notification", api.Read, true, p.notification},
		{"GET notifications/{id}/story", "watch-notification", api.Read, false, p.notificationStory},
		{"GET notifications/{id}/discard", "ask-discard-notification", api.Operate, false, p.askDiscardNotification},
		{"POST notifications/{id}/{verb}", "decide-notification", api.Operate, false, p.decideNotification},
		{"GET parked", "list-causes", api.Read, false, p.parked},
		{"GET activity", "list-activity", api.Read, false, p.activities},
		{"GET settings", "show-settings", api.Read, false, p.settings},
		{"POST preferences", "set-preferences", api.AnyToken, false, p.setPreferences},
		{"GET design", "show-design", api.AnyToken, false, p.design},
		// Any other path is an unknown page.
		{"GET ", "unknown-page", api.AnyToken, false, unknown},
		{"POST ", "unknown-page", api.AnyToken, false, unknown},
		{"", "unknown-page", api.AnyToken, false, unknown},
	})
}

// wholePages lists the pages and actions that are about the whole node: who is only for a part of it is refused.
func (p *Pages) wholePages() []page {
	return slices.Concat(p.bulkPages(), p.channelPages(), p.listPages(), p.nodePages(), p.peoplePages())
}

// mostForm is the most bytes of a form.
const mostForm = 256 << 10

// Routes returns the pages as routes behind a gate, with what they are made of.
func (p *Pages) Routes() []gate.Route {
	routes := []gate.Route{
		{Pattern: "GET /{$}", Handler: http.HandlerFunc(p.home), Open: true},
		{Pattern: "GET " + Root + assetFolder + "{name}", Handler: http.HandlerFunc(p.serveAsset), Open: true},
	}
	routes = append(routes, p.signInRoutes()...)
	narrow := slices.Concat(p.pages(), p.accountPages())
	for i, one := range slices.Concat(narrow, p.wholePages()) {
		r := gate.Route{
			Pattern: below(one.pattern), Operation: one.operation, Handler: p.handler(&one), Right: one.right, Scoped: i < len(narrow), Page: true,
		}
		if strings.HasPrefix(one.pattern, http.MethodPost) {
			r.MaxBody = mostForm
		}
		routes = append(routes, r)
	}
	return append(routes, p.exportRoute())
}

// below returns the pattern of a page below Root.
func below(pattern string) string {
	method, path, _ := strings.Cut(pattern, " ")
	return strings.TrimLeft(method+" "+Root+path, " ")
}

// handler serves a page, and tells the audit log of what the page does.
func (p *Pages) handler(of *page) http.Handler {
	changes := strings.HasPrefix(of.pattern, http.MethodPost) && of.right != api.AnyToken
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secure(w.Header())
		began := time.Now()
		a, err := p.ask(of, w, r)
		if of.content || changes || r.URL.Query().Get("grep") != "" || // a search of payloads tells what is in them
			admin.IsDenied(err) {
			detail := []any{"status", statusOf(err), "tookUs", time.Since(began).Microseconds()}
			if d, ok := a.(interface{ detail() []any }); ok {
				detail = append(detail, d.detail()...)
			}
			_ = p.Called(r.Context(), of.operation, cmp.Or(r.PathValue("id"), r.PathValue("name")), err, detail...) // it is logged, and changes no answer
		}
		if a == nil { // else the page itself tells what is wrong
			a = p.problemView(r, problemOf(err))
		}
		a.send(p, w, r)
	})
}

// ask reads the form of a request and asks the page.
func (p *Pages) ask(of *page, w http.ResponseWriter, r *http.Request) (answer, error) {
	if r.Method == http.MethodPost {
		r.Body = http.MaxBytesReader(w, r.Body, mostForm)
		if err := r.ParseForm(); err != nil {
			return nil, api.Unreadable.Problem("the form is larger than this node takes, or cannot be read")
		}
	}
	return of.serve(r)
}

// problemOf returns the refusal in an error.
func problemOf(err error) *api.Problem {
	if p, ok := errors.AsType[*api.Problem](err); ok {
		return p
	}
	return api.Internal.Problem("the node failed; its log says why")
}

func statusOf(err error) int {
	if err == nil {
		return http.StatusOK
	}
	return problemOf(err).Status
}

// told is an answer with what the audit log is to know about the call, as keys and values.
type told struct {
	answer

	with []any
}

func (t told) detail() []any { return t.with }

// home leads a browser to the pages. A program gets what an unknown path gives.
func (p *Pages) home(w http.ResponseWriter, r *http.Request) {
	if !strings.Contains(r.Header.Get("Accept"), "text/html") {
		api.NoRoute.Problem("there is nothing at /; /openapi.json lists what there is, and people find the operator pages at " + p.link()).Answer(w)
		return
	}
	secure(w.Header())
	redirect(p.link()).send(p, w, r)
}

// redirect leads to another page after a form.
type redirect string

func (to redirect) send(p *Pages, w http.ResponseWriter, r *http.Request) {
	p.announce(w, r, string(to))
	w.Header().Set("Location", string(to))
	w.WriteHeader(http.StatusSeeOther)
}

// link returns the path of a page. The parts are escaped.
func (p *Pages) link(parts ...string) string {
	for i, part := range parts {
		parts[i] = api.Segment(part)
	}
	return p.Base + Root + strings.Join(parts, "/")
}

// local returns a path below the pages that a form gives as its way back, or the first page: a form must lead
// nobody elsewhere.
func (p *Pages) local(path string) string {
	if !strings.HasPrefix(path, p.link()) || strings.ContainsAny(path, "\\\r\n\t") || strings.HasPrefix(path, "//") {
		return p.link()
	}
	return path
}

// secure sets the headers of each answer to a person.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
}
