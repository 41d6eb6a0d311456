package transport

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// refusalsPerSecond and refusalBurst bound, for each remote address, how
	// many refused signatures are answered with 401 and logged. Beyond them the
	// answer is 429 and the log is silent; good signatures always pass.
	refusalsPerSecond = 1
	refusalBurst      = 20
	// maxWatched bounds the memory of the limiter.
	maxWatched = 4096
)

// Refused is a message that was turned away before it reached the Receiver.
type Refused struct {
	Source, MessageID string // as the envelope has them; nobody vouches for them
	Remote            netip.Addr
	Problem           string
	Suppressed        bool // not logged: too many from this address
}

// watch limits refusals for each remote address.
type watch struct {
	mu   sync.Mutex
	seen map[netip.Addr]*rate.Limiter
}

// allow counts one refusal and reports whether it is within the limit.
func (w *watch) allow(a netip.Addr) bool {
	if a.Is6() && !a.Is4In6() {
		// One caller owns a whole /64.
		if p, err := a.WithZone("").Prefix(64); err == nil {
			a = p.Addr()
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	l, ok := w.seen[a]
	if !ok {
		if len(w.seen) >= maxWatched {
			w.shrink()
		}
		l = rate.NewLimiter(refusalsPerSecond, refusalBurst)
		w.seen[a] = l
	}
	return l.Allow()
}

// shrink forgets who has been quiet, or else half of all: a full map is an
// attack from many addresses, which no limit for each of them can stop, and
// which must not be able to make every call walk through the map.
func (w *watch) shrink() {
	now := time.Now()
	for a, l := range w.seen {
		if l.TokensAt(now) >= refusalBurst {
			delete(w.seen, a)
		}
	}
	for a := range w.seen {
		if len(w.seen) <= maxWatched/2 {
			return
		}
		delete(w.seen, a)
	}
}

// remote returns the caller's address; sockets without one share the zero.
func remote(r *http.Request) netip.Addr {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}
	}
	return a.Unmap()
}
