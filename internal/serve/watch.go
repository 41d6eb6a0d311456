package serve

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
	// many refused proofs are answered as such and logged. Beyond them the
	// answer is to wait and the log is silent; good proofs always pass.
	refusalsPerSecond = 1
	refusalBurst      = 20
	// linesPerSecond and lineBurst bound the log lines over all addresses, here and
	// in FewLines: who has many of them must not fill a disk.
	linesPerSecond = 2
	lineBurst      = 200
	// maxWatched bounds the memory of the limiter.
	maxWatched = 4096
)

// RefusedWait is what an address that tries too many proofs is told to wait.
const RefusedWait = 30 * time.Second

// Watch limits refused proofs (signatures, credentials, tokens) for each remote
// address. Its zero value is ready. It may be used concurrently.
type Watch struct {
	mu    sync.Mutex
	seen  map[netip.Addr]*rate.Limiter
	lines *rate.Limiter
}

// Refuse counts one refusal and says whether it is within the limit of its
// address, and whether it may be logged.
func (w *Watch) Refuse(from netip.Addr) (within, tell bool) {
	from = group(from)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen == nil {
		w.seen, w.lines = map[netip.Addr]*rate.Limiter{}, rate.NewLimiter(linesPerSecond, lineBurst)
	}
	l, ok := w.seen[from]
	if !ok {
		if len(w.seen) >= maxWatched {
			w.shrink()
		}
		l = rate.NewLimiter(refusalsPerSecond, refusalBurst)
		w.seen[from] = l
	}
	within = l.Allow()
	return within, within && w.lines.Allow()
}

// shrink forgets who has been quiet, or else half of all: a full map is an
// attack from many addresses, which no limit for each of them can stop, and
// which must not be able to make every call walk through the map.
func (w *Watch) shrink() {
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

// Address returns the address of whoever makes a request; sockets without one
// share the zero.
func Address(r *http.Request) netip.Addr { return parseAddress(r.RemoteAddr) }

func parseAddress(hostport string) netip.Addr {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		return netip.Addr{}
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}
	}
	return a.Unmap()
}

// group is what counts as one address: of IPv6, one caller owns a whole /64. A
// machine is one, by whatever address of its own it calls.
func group(a netip.Addr) netip.Addr {
	switch {
	case a.IsLoopback():
		return netip.Addr{}
	case a.Is6():
		if p, err := a.WithZone("").Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return a
}
