package serve

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	mostConnections  = 4096
	leastConnections = 16
)

// connections returns how many connections there may be, and how many of them are reserved for this machine.
// Half of the files that a process may have open stay for our own use: the store, backups, deliveries.
func connections(wanted int) (most, ours int) {
	most = wanted
	if most == 0 {
		most = mostConnections
		if n := descriptors(); n > 0 {
			most = int(min(uint64(most), max(n/2, leastConnections)))
		}
	}
	return most, min(max(most/8, 1), 64)
}

// conns holds all connections of all listeners.
type conns struct {
	most, ours int

	mu      sync.Mutex
	all     map[*conn]struct{}
	by      map[netip.Addr]int
	distant int // from other machines

	refused func(reason string)
}

// conn is one connection. The lock of conns guards the fields that change.
type conn struct {
	net.Conn
	of    *conns
	from  netip.Addr
	used  time.Time // when it came, or when its last request ended
	known int       // requests in hand whose senders are known
	asked bool      // its last bytes were a request
	gone  bool
}

// listener hands out connections as long as there is room.
type listener struct {
	net.Listener
	conns *conns
}

func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if in := l.conns.add(c); in != nil {
			return in, nil
		}
		l.conns.refused(refusedConnection)
		_ = c.Close() // nothing was sent
	}
}

// add makes room for a connection. It closes the one that has been idle for longest, of the address with the
// most. Nil: no connection is idle.
func (s *conns) add(c net.Conn) *conn {
	in := &conn{Conn: c, of: s, from: Group(parseAddress(c.RemoteAddr().String())), used: time.Now()}
	s.mu.Lock()
	var victim *conn
	switch {
	case in.distant() && s.distant >= s.most-s.ours:
		victim = s.idle(true)
	case len(s.all) >= s.most:
		victim = s.idle(in.distant())
	default:
		s.enter(in)
		s.mu.Unlock()
		return in
	}
	if victim == nil {
		s.mu.Unlock()
		return nil
	}
	s.drop(victim)
	s.enter(in)
	s.mu.Unlock()
	s.refused(refusedConnection)
	_ = victim.Conn.Close() // its request, if any, ends with its own error
	return in
}

// distant reports whether the connection comes from another machine.
func (c *conn) distant() bool { return c.from.IsValid() }

// idle finds the connection that gives way: one without a request of a known sender in hand.
func (s *conns) idle(distant bool) *conn {
	var victim *conn
	for c := range s.all {
		if c.known > 0 || distant && !c.distant() {
			continue
		}
		if victim == nil || cmp.Or(-cmp.Compare(s.by[c.from], s.by[victim.from]), c.used.Compare(victim.used)) < 0 {
			victim = c
		}
	}
	return victim
}

func (s *conns) enter(c *conn) {
	s.all[c] = struct{}{}
	s.by[c.from]++
	if c.distant() {
		s.distant++
	}
}

func (s *conns) drop(c *conn) {
	if c.gone {
		return
	}
	c.gone = true
	delete(s.all, c)
	if s.by[c.from]--; s.by[c.from] == 0 {
		delete(s.by, c.from)
	}
	if c.distant() {
		s.distant--
	}
}

// Close closes the connection and gives its place back.
func (c *conn) Close() error {
	c.of.mu.Lock()
	mute := !c.gone && !c.asked
	c.of.drop(c)
	c.of.mu.Unlock()
	if mute {
		c.of.refused(refusedMute)
	}
	return c.Conn.Close()
}

// serves records that a request has come or ended. known is how many more requests of known senders there are
// now. A nil conn comes from a listener that is not ours.
func (c *conn) serves(known int) {
	if c == nil {
		return
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.known += known
	c.used, c.asked = time.Now(), true
}

// begins records that something comes that may be a request.
func (c *conn) begins() {
	if c == nil {
		return
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.asked = false
}

type connKey struct{}

// connOf finds our connection inside the server's, which may be TLS.
func connOf(c net.Conn) *conn {
	if inner, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = inner.NetConn()
	}
	own, _ := c.(*conn)
	return own
}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, connOf(c))
}
