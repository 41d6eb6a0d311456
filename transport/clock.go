package transport

import (
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/holdfast-mq/holdfast/internal/serve"
	"github.com/holdfast-mq/holdfast/wire"
)

// confirmClock passes on the time in a signed message. A sender on this machine has the same clock
// and confirms nothing. Nor does v1, whose signature covers no time that is checked.
func (s *Server) confirmClock(r *http.Request, e *wire.Envelope) {
	if s.conf.Heard == nil || s.conf.Peer == nil || e.Timestamp == "" || e.KeyID == "" || !elsewhere(r) {
		return
	}
	if at, err := time.Parse(time.RFC3339, e.Timestamp); err == nil {
		s.conf.Heard(at)
	}
}

// elsewhere reports whether a request certainly comes from another machine.
func elsewhere(r *http.Request) bool {
	from := serve.Address(r)
	if !from.IsValid() || from.IsLoopback() {
		return false
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	at, err := netip.ParseAddrPort(local.String())
	return err == nil && at.Addr().Unmap() != from
}

// confirmClockBy passes on the time that the other side reports, if it is another machine that
// answered over TLS.
func (c *Client) confirmClockBy(a answer) {
	if c.conf.Heard == nil || !c.away {
		return
	}
	if at, err := http.ParseTime(a.header.Get("Date")); err == nil {
		c.conf.Heard(at)
	}
}
