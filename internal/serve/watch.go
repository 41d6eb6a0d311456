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
	// refusalsPerSecond and refusalBurst bound, for each remote address, how many refused proofs are answered
	// as such and logged. Beyond that the answer is to wait, and the log is silent. Valid proofs always pass.
	refusalsPerSecond = 1
	refusalBurst      = 20
	// linesPerSecond and lineBurst bound the log lines over all addresses, here and in FewLines: a caller
	// with many addresses must not fill a disk.
	linesPerSecond = 2
	lineBurst      = 200
)

// RefusedWait is how long an address that tries too many proofs must wait.
const RefusedWait = 30 * time.Second

// Watch limits refused proofs (signatures, credentials, tokens) for each remote
// address. Its zero value is ready. It may be used concurrently.
type Watch struct {
	begin sync.Once
	pace  Pace[netip.Addr]
	lines *rate.Limiter
}

// Refuse counts one refusal. within says whether it is within the limit of its address, and tell whether it
// may be logged.
func (w *Watch) Refuse(from netip.Addr) (within, tell bool) {
	w.begin.Do(func() {
		w.pace.PerSecond, w.pace.Burst = refusalsPerSecond, refusalBurst
		w.lines = rate.NewLimiter(linesPerSecond, lineBurst)
	})
	within = w.pace.Allow(Group(from))
	return within, within && w.lines.Allow()
}

// Address returns the address of a request's sender. Sockets without an address share the zero Addr.
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

// Group returns what counts as one address. With IPv6, one caller owns a whole /64. A machine counts as one,
// by whichever of its own addresses it calls.
func Group(a netip.Addr) netip.Addr {
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
