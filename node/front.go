package node

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-mq/holdfast/admin/httpapi"
	"github.com/holdfast-mq/holdfast/link"
)

// front is the HTTP server at the node's address. It also serves while a start waits for its database.
type front struct {
	srv     *http.Server
	serve   func() error
	handler atomic.Pointer[http.Handler]
	once    sync.Once
	ended   chan struct{} // closed when it serves no more
	err     error         // why it ended; set before ended is closed
}

// waiting is what /readyz says during such a start. It does not say more, because the caller has shown no
// token: the log says what the start waits for.
const waiting = "starting: waits for the database"

// buildFront makes the server. It does not serve yet.
func (n *Node) buildFront(ctx context.Context) (err error) {
	if n.cfg.TLS.Cert != "" {
		files := link.Files{CA: n.cfg.TLS.Clients, Cert: n.cfg.TLS.Cert, Key: n.cfg.TLS.Key}
		n.tls, err = link.ServerTLS(files, func(err error) { n.log.ErrorContext(ctx, "the old certificate stays in use", slog.Any("error", err)) })
		if err != nil {
			return err
		}
	}
	n.guard = newGuard(n.cfg.Limits, n.log)
	f := &front{ended: make(chan struct{})}
	f.answer(waits())
	f.srv = n.guard.Server(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*f.handler.Load()).ServeHTTP(w, r) }))
	f.srv.ReadTimeout, f.srv.WriteTimeout = time.Minute, n.patience()+30*time.Second
	f.srv.BaseContext = func(net.Listener) context.Context { return context.WithoutCancel(ctx) }
	listener := n.guard.Listener(n.listener)
	f.serve = func() error { return f.srv.Serve(listener) }
	if f.srv.TLSConfig = n.tls; n.tls != nil {
		f.serve = func() error { return f.srv.ServeTLS(listener, "", "") }
	}
	n.front = f
	return nil
}

// answer sets the handler that answers from now on.
func (f *front) answer(h http.Handler) { f.handler.Store(&h) }

// begin starts serving, if it has not started yet.
func (f *front) begin() {
	f.once.Do(func() {
		go func() {
			defer close(f.ended)
			f.err = f.serve()
		}()
	})
}

// close ends all connections.
func (f *front) close() {
	_ = f.srv.Close() // nobody needs the connections any more
	f.begin()         // if it has never begun, it begins and ends at once
	<-f.ended
}

// stopped waits for the end of the server after its shutdown.
func (f *front) stopped() error {
	if <-f.ended; errors.Is(f.err, http.ErrServerClosed) {
		return nil
	}
	return f.err
}

// waits answers while a start waits. /healthz says alive: a restart would not help.
func waits() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", httpapi.Unavailable("the node starts, and waits for its database; nothing was done: send the same request again"))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, waiting, http.StatusServiceUnavailable)
	})
	return mux
}
