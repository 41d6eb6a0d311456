package httpapi

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// guard keeps web pages of other sites away from a listener that asks for no
// token: those that a browser sends here by a name which resolves to the
// loopback (DNS rebinding), and those that post here across sites. It also
// turns a panic into an answer.
func (s *Server) guard(next http.Handler) http.Handler {
	var foreign http.CrossOriginProtection
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		if !s.AuthRequired && !s.signed(r) {
			if !s.answersTo(r.Host) {
				api.ForeignHost.Problem(fmt.Sprintf("this node does not answer to the name %q without a token; use localhost or 127.0.0.1", api.Clip(r.Host)),
					api.Fault{Field: "Host", Value: api.Clip(r.Host), Problem: "is not a name of the loopback"}).Answer(w)
				return
			}
			if err := foreign.Check(r); err != nil {
				api.ForeignOrigin.Problem("a web page of another site may not change anything here",
					api.Fault{Field: "Origin", Value: api.Clip(r.Header.Get("Origin")), Problem: "is not this node"}).Answer(w)
				return
			}
		}
		tracked := &trackedWriter{ResponseWriter: w}
		defer s.recover(tracked, r)
		next.ServeHTTP(tracked, r)
	})
}

// mounts says whether another package serves this on the same listener.
func (s *Server) mounts(pattern string) bool {
	return slices.ContainsFunc(s.Mounts, func(m Mount) bool { return m.Pattern == pattern })
}

// signed says whether the request goes to a mount that proves its sender.
func (s *Server) signed(r *http.Request) bool {
	return slices.ContainsFunc(s.Mounts, func(m Mount) bool {
		return m.Signed && m.Pattern == r.Method+" "+r.URL.Path
	})
}

func (s *Server) answersTo(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if host == "" || host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	if ip, err := netip.ParseAddr(host); err == nil && (ip.IsLoopback() || len(s.AllowedHosts) > 0) {
		return true
	}
	return slices.ContainsFunc(s.AllowedHosts, func(allowed string) bool { return strings.EqualFold(allowed, host) })
}

// recover answers for a handler that panicked.
func (s *Server) recover(w *trackedWriter, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if v != http.ErrAbortHandler { //nolint:errorlint // net/http's own signal, passed as it is
		s.few.LogAttrs(r.Context(), slog.LevelError, "request panicked",
			slog.String("method", api.Clip(r.Method)), slog.String("path", api.Clip(r.URL.Path)), slog.Any("panic", v), slog.String("stack", string(debug.Stack())))
	}
	if w.begun || v == http.ErrAbortHandler { //nolint:errorlint // as above
		panic(http.ErrAbortHandler) // half an answer must not look whole
	}
	api.Internal.Problem("the node failed; its log says why").Answer(w)
}

// trackedWriter knows whether an answer has begun.
type trackedWriter struct {
	http.ResponseWriter
	begun bool
}

func (w *trackedWriter) WriteHeader(status int) {
	w.begun = true
	w.ResponseWriter.WriteHeader(status)
}

func (w *trackedWriter) Write(p []byte) (int, error) {
	w.begun = true
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *trackedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// answerAll answers with a problem where the mux would answer with a line of
// text.
func answerAll(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		probe := headerOnly{}
		h.ServeHTTP(probe, r)
		if allow := probe.Header().Get("Allow"); allow != "" {
			api.NoMethod.Problem(fmt.Sprintf("%s does not take %s; it takes %s", api.Clip(r.URL.Path), api.Clip(r.Method), allow),
				api.Fault{Field: "method", Value: api.Clip(r.Method), Problem: "must be one of " + allow}).
				With("Allow", allow).Answer(w)
			return
		}
		api.NoRoute.Problem(fmt.Sprintf("there is nothing at %s; /openapi.json lists what there is", api.Clip(r.URL.Path)),
			api.Fault{Field: "path", Value: api.Clip(r.URL.Path), Problem: "is not a route of this API"}).Answer(w)
	})
}

// headerOnly takes an answer and keeps its header.
type headerOnly http.Header

func (h headerOnly) Header() http.Header { return http.Header(h) }

func (h headerOnly) Write(p []byte) (int, error) { return len(p), nil }

func (h headerOnly) WriteHeader(int) {}
