package gate

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// guard keeps web pages of other sites away from a listener that needs no token. A browser may send them here
// by a name that resolves to the loopback (DNS rebinding), or post here across sites. guard also turns a
// panic into an answer.
func (g *gate) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		if !g.required() && !g.signed(r) {
			if !g.answersTo(r.Host) { // no page: a foreign one could read it, and learn the node's name
				api.ForeignHost.Problem(fmt.Sprintf("this node does not answer to the name %q without a token; use localhost or 127.0.0.1", api.Clip(r.Host)),
					api.Fault{Field: "Host", Value: api.Clip(r.Host), Problem: "is not a name of the loopback"}).Answer(w)
				return
			}
			if err := g.foreign.Check(r); err != nil {
				g.refuse(w, r, g.route(r), foreignOrigin(r))
				return
			}
		}
		tracked := &trackedWriter{ResponseWriter: w}
		defer g.recover(tracked, r)
		next.ServeHTTP(tracked, r)
	})
}

func foreignOrigin(r *http.Request) *api.Problem {
	return api.ForeignOrigin.Problem("a web page of another site may not change anything here",
		api.Fault{Field: "Origin", Value: api.Clip(r.Header.Get("Origin")), Problem: "is not this node"})
}

// signed reports whether the request goes to a route that proves its sender.
func (g *gate) signed(r *http.Request) bool { return g.route(r).Signed }

// route returns the route that a request goes to. The zero Route: there is none.
func (g *gate) route(r *http.Request) *Route {
	_, pattern := g.mux.Handler(r)
	if i := slices.IndexFunc(g.routes, func(m Route) bool { return m.Pattern == pattern }); i >= 0 {
		return &g.routes[i]
	}
	return &Route{}
}

func (g *gate) answersTo(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if host == "" || host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	if ip, err := netip.ParseAddr(host); err == nil && (ip.IsLoopback() || len(g.AllowedHosts) > 0) {
		return true
	}
	return slices.ContainsFunc(g.AllowedHosts, func(allowed string) bool { return strings.EqualFold(allowed, host) })
}
