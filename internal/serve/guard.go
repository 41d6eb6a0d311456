package serve

import (
	"context"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"
)

// Limits bound what strangers cost. Zero fields: the default.
type Limits struct {
	// Connections are at one time, over all listeners; an eighth of them, 64 at
	// most, is for this machine alone. Zero: half of the files that the process
	// may have open, 4096 at most.
	Connections int
	Bytes       int64 // of the bodies of unknown senders in hand; zero: 16 MiB
	Requests    int   // of unknown senders in hand; zero: 1024
}

const (
	defaultBytes    = 16 << 20
	defaultRequests = 1024
	// Bounds of net/http's own: of headers, and of what HTTP/2 keeps of bodies
	// that nobody reads yet.
	headerBytes = 32 << 10
	headerTime  = 10 * time.Second
	idleTime    = 2 * time.Minute
	streams     = 64
	streamBytes = 64 << 10
	unreadBytes = 128 << 10 // of one connection
)

// The reasons by which refusals are counted, beside "http_" and a status.
const (
	refusedConnection = "connection" // closed for want of room
	refusedMute       = "no_request" // ended without one, or with what is none: of HTTP, or of TLS
	refusedCrowded    = "crowded"    // requests that had to give way
)

// Guard stands around the handler of a node's listeners. It may be used
// concurrently.
type Guard struct {
	crowd *crowd
	conns *conns
	log   *slog.Logger // of the server itself

	mu      sync.Mutex
	refused map[string]int64
}

// NewGuard makes the one guard of a node. Nil log: silent.
func NewGuard(l Limits, log *slog.Logger) *Guard {
	if l.Bytes == 0 {
		l.Bytes = defaultBytes
	}
	if l.Requests == 0 {
		l.Requests = defaultRequests
	}
	g := &Guard{crowd: newCrowd(l.Bytes, l.Requests), log: FewLines(log), refused: map[string]int64{}}
	most, ours := connections(l.Connections)
	g.conns = &conns{most: most, ours: ours, all: map[*conn]struct{}{}, by: map[netip.Addr]int{}, refused: g.count}
	return g
}

// Listener bounds the connections of a listener together with those of all
// others of this guard.
func (g *Guard) Listener(l net.Listener) net.Listener { return &listener{l, g.conns} }

// Server is an http.Server with the bounds of a stranger: of headers, of
// streams and what they hold, and of its own log lines. Times for bodies and
// answers are the caller's to set.
func (g *Guard) Server(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           g.Handler(h),
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    headerBytes,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: streams, MaxReceiveBufferPerStream: streamBytes, MaxReceiveBufferPerConnection: unreadBytes,
		},
		ConnContext: withConn,
		ConnState: func(c net.Conn, to http.ConnState) {
			if to == http.StateActive {
				connOf(c).begins()
			}
		},
		ErrorLog: slog.NewLogLogger(g.log.Handler(), slog.LevelWarn),
	}
}

type guestKey struct{}

// Handler counts each request as one of a stranger until Known says otherwise.
func (g *Guard) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := &countedAnswer{ResponseWriter: w}
		defer g.countAnswer(answer)
		control := http.NewResponseController(w)
		v := &visit{}
		v.conn, _ = r.Context().Value(connKey{}).(*conn)
		v.conn.serves(0)
		v.guest = g.crowd.enter(group(Address(r)), func() {
			g.count(refusedCrowded)
			_ = control.SetReadDeadline(time.Now())
			_ = control.SetWriteDeadline(time.Now().Add(time.Second)) // to say so
		})
		if v.guest == nil {
			answer.Header().Set("Retry-After", "1")
			answer.Header().Set("Connection", "close")
			http.Error(answer, ErrCrowded.Error(), http.StatusServiceUnavailable)
			return
		}
		defer v.end()
		own := r.WithContext(context.WithValue(r.Context(), guestKey{}, v))
		if r.ContentLength != 0 {
			// Not in r, where net/http looks whether the body was asked for: it would
			// wait for it before it sends a refusal.
			own.Body = &countedBody{ReadInTime(w, r), v.guest}
		}
		next.ServeHTTP(answer, own)
	})
}

// visit is one request behind the guard.
type visit struct {
	guest *guest
	conn  *conn // nil: it did not come by a listener of ours
	known bool
}

func (v *visit) end() {
	v.guest.end()
	known := 0
	if v.known {
		known = 1
	}
	v.conn.serves(-known)
}

// Known says that the sender of a request is known: nothing of it counts as a
// stranger's from now on, and its connection stays. It reports false if the
// request had to give way before. It is called by the goroutine that serves the
// request; without a Guard it does nothing.
func Known(r *http.Request) bool {
	v, ok := r.Context().Value(guestKey{}).(*visit)
	if !ok || v.known {
		return true
	}
	if !v.guest.leave() {
		return false
	}
	v.known = true
	v.conn.serves(1)
	return true
}

// Refused tells how many requests and connections were refused, by reason.
func (g *Guard) Refused() map[string]int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.refused)
}

func (g *Guard) count(reason string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refused[reason]++
}

// countAnswer counts what was answered with a refusal, of which sort ever.
func (g *Guard) countAnswer(a *countedAnswer) {
	if a.status >= http.StatusBadRequest {
		g.count("http_" + strconv.Itoa(a.status))
	}
}

// countedAnswer remembers the status of an answer.
type countedAnswer struct {
	http.ResponseWriter
	status int
}

func (w *countedAnswer) WriteHeader(status int) {
	if w.status == 0 || w.status < http.StatusOK {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *countedAnswer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
