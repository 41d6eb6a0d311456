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

// Limits bound what strangers cost. A zero field means the default.
type Limits struct {
	// Connections is the most connections at one time, over all listeners. An eighth of them, at most 64, is
	// reserved for this machine. Zero: half of the files that the process may have open, at most 4096.
	Connections int
	Bytes       int64 // of the bodies of unknown senders in hand; zero: 16 MiB
	Requests    int   // of unknown senders in hand; zero: 1024
}

const (
	defaultBytes    = 16 << 20
	defaultRequests = 1024
	// Bounds for net/http itself: of headers, and of what HTTP/2 keeps of bodies that nobody reads yet.
	headerBytes = 32 << 10
	headerTime  = 10 * time.Second
	idleTime    = 2 * time.Minute
	streams     = 64
	streamBytes = 64 << 10
	unreadBytes = 128 << 10 // of one connection
)

// The reasons by which refusals are counted, in addition to "http_" and a status.
const (
	refusedConnection = "connection" // closed because there was no room
	refusedMute       = "no_request" // ended without a request of HTTP, or without a handshake of TLS
	refusedCrowded    = "crowded"    // requests that had to give way
)

// Guard stands around the handler of a node's listeners. It is safe for concurrent use.
type Guard struct {
	crowd *crowd
	conns *conns
	log   *slog.Logger // of the server itself

	mu      sync.Mutex
	refused map[string]int64
}

// NewGuard makes a guard; a node has one. Nil log: silent.
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

// Listener bounds the connections of a listener, together with those of all other listeners of this guard.
func (g *Guard) Listener(l net.Listener) net.Listener { return &listener{l, g.conns} }

// Server returns an http.Server with the bounds for strangers: of headers, of streams and what they hold, and
// of its log lines. The caller sets the time limits of bodies and answers.
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

// Handler counts each request as a stranger's until Known says otherwise.
func (g *Guard) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := &countedAnswer{ResponseWriter: w}
		defer g.countAnswer(answer)
		control := http.NewResponseController(w)
		v := &visit{}
		v.conn, _ = r.Context().Value(connKey{}).(*conn)
		v.conn.serves(0)
		v.guest = g.crowd.enter(Group(Address(r)), func() {
			g.count(refusedCrowded)
			_ = control.SetReadDeadline(time.Now())
			_ = control.SetWriteDeadline(time.Now().Add(time.Second)) // time to answer that
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
			// Not in r: there net/http checks whether the body was asked for, and would wait for it before it
			// sends a refusal.
			own.Body = &countedBody{ReadInTime(w, r), v.guest}
		}
		next.ServeHTTP(answer, own)
	})
}

// visit is one request behind the guard.
type visit struct {
	guest *guest
	conn  *conn // nil: it did not come through a listener of ours
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

// Known says that the sender of a request is known. From now on nothing of it counts as a stranger's, and its
// connection stays. Known returns false if the request had to give way before. The goroutine that serves the
// request calls it. Without a Guard it does nothing.
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

// Refused returns how many requests and connections were refused, by reason.
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

// countAnswer counts refusals of every sort.
func (g *Guard) countAnswer(a *countedAnswer) {
	if a.status >= http.StatusBadRequest {
		g.count("http_" + strconv.Itoa(a.status))
	}
}

// countedAnswer records the status of an answer.
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
