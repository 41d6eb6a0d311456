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

// front is the server of the node's address: of the node, and before that of a
// start that waits for its database.
type front struct {
	srv     *http.Server
	serve   func() error
	handler atomic.Pointer[http.Handler]
	once    sync.Once
	ended   chan struct{} // closed when it serves no more
	err     error         // why, from then on
}

// waiting is what /readyz says of such a start. Nobody has shown a token: the log
// says what it waits for.
const waiting = "starting: waits for the database"

// buildFront makes the server, which does not serve yet.
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

// answer has a handler answer from now on.
func (f *front) answer(h http.Handler) { f.handler.Store(&h) }

// begin serves, if it does not yet.
func (f *front) begin() {
	f.once.Do(func() {
		go func() {
			defer close(f.ended)
			f.err = f.serve()
		}()
	})
}

// close ends what is still served.
func (f *front) close() {
	_ = f.srv.Close() // its connections are nobody's any more
	f.begin()         // it ends at once, if it never has begun
	<-f.ended
}

// stopped waits for the end of the server after its shutdown.
func (f *front) stopped() error {
	if <-f.ended; errors.Is(f.err, http.ErrServerClosed) {
		return nil
	}
	return f.err
}

// waits answers for a start that waits. It is alive: a restart helps nothing.
func waits() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", httpapi.Unavailable("the node starts, and waits for its database; nothing was done: send the same request again"))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, waiting, http.StatusServiceUnavailable)
	})
	return mux
}
