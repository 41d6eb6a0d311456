package gate

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// recover answers a request whose handler panicked.
func (g *gate) recover(w *trackedWriter, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if v != http.ErrAbortHandler { //nolint:errorlint // net/http's own signal, passed as it is
		g.few.LogAttrs(r.Context(), slog.LevelError, "request panicked",
			slog.String("method", api.Clip(r.Method)), slog.String("path", api.Clip(r.URL.Path)), slog.Any("panic", v), slog.String("stack", string(debug.Stack())))
	}
	if w.begun || v == http.ErrAbortHandler { //nolint:errorlint // as above
		panic(http.ErrAbortHandler) // half an answer must not look whole
	}
	g.refuse(w, r, g.route(r), api.Internal.Problem("the node failed; its log says why"))
}

// trackedWriter records whether an answer has begun.
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

// FlushError sends at least the header, and records that. Otherwise, if a handler flushes and then panics,
// its answer would end as if it were complete.
func (w *trackedWriter) FlushError() error {
	w.begun = true
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Flush is FlushError for handlers that look for an http.Flusher.
func (w *trackedWriter) Flush() { _ = w.FlushError() }

// Unwrap lets http.ResponseController reach the connection.
func (w *trackedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// answerAll answers with a problem where the mux would answer with a line of text.
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
