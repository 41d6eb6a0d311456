package exchange

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"
)

// conn is a connection, with one request at a time.
type conn struct {
	*http.ClientConn
	gate  *gate
	at    place
	timer *time.Timer // ends it when it was idle for too long
}

// end closes the connection.
func (k *conn) end() {
	k.timer.Stop()
	_ = k.Close() // whoever reads from it hears of it
}

// calling is what a dialer and a proxy are to know of the exchange that they
// are for.
func calling(ctx context.Context) call {
	c, _ := ctx.Value(callKey{}).(call) // connect has put it there
	return c
}

type (
	callKey struct{}
	call    struct {
		url  *url.URL
		gate **gate
	}
)

// connect opens a connection for a request.
func (c *Client) connect(req *http.Request, at place) (*conn, error) {
	k := &conn{at: at}
	var err error
	k.ClientConn, err = c.conns.NewClientConn(context.WithValue(req.Context(), callKey{}, call{req.URL, &k.gate}), at.scheme, at.address)
	if err != nil {
		return nil, err
	}
	k.timer = time.AfterFunc(c.idleFor, func() {
		if c.remove(k) {
			k.end()
		}
	})
	k.timer.Stop()
	k.gate.open(false)
	return k, nil
}

// take returns a connection that was kept and is not known to be closed; nil:
// there is none.
func (c *Client) take(at place) *conn {
	for {
		c.mu.Lock()
		list := c.idle[at]
		if len(list) == 0 {
			c.mu.Unlock()
			return nil
		}
		k := list[len(list)-1]
		c.idle[at] = list[:len(list)-1]
		c.mu.Unlock()
		k.timer.Stop()
		if k.Err() == nil {
			k.gate.open(true)
			return k
		}
	}
}

// put keeps a connection whose answer was read to its end. It makes room for it:
// the one that was idle longest is the likeliest to be closed.
func (c *Client) put(k *conn) {
	if c.idleMost == 0 || k.Available() == 0 {
		k.end()
		return
	}
	c.mu.Lock()
	list := c.idle[k.at]
	list = append(list, k)
	var oldest *conn
	if len(list) > c.idleMost {
		oldest = list[0]
		list = slices.Delete(list, 0, 1)
	}
	c.idle[k.at] = list
	k.timer.Reset(c.idleFor)
	c.mu.Unlock()
	if oldest != nil {
		oldest.end()
	}
}

// remove takes a connection out of those that are idle, and says whether it
// was one of them.
func (c *Client) remove(k *conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.idle[k.at]
	i := slices.Index(list, k)
	if i < 0 {
		return false
	}
	c.idle[k.at] = slices.Delete(list, i, i+1)
	return true
}

// gate stands below TLS. It lets no byte of a request out on a connection that the
// other side has closed while it was idle, and knows whether any has left.
type gate struct {
	net.Conn
	used  atomic.Bool // there were requests before this one
	ended atomic.Bool // a read has failed
	wrote atomic.Bool // of the request in hand; never false where one may have left
}

// open begins a request.
func (g *gate) open(used bool) {
	g.used.Store(used)
	g.wrote.Store(false)
}

// errStale is what a request hears on a connection that is closed.
var errStale = errors.New("the connection was closed while it was idle")

func (g *gate) Write(p []byte) (int, error) {
	if g.wrote.Load() {
		return g.Conn.Write(p)
	}
	if g.used.Load() && (g.ended.Load() || !silent(g.Conn)) {
		return 0, errStale
	}
	g.wrote.Store(true)
	n, err := g.Conn.Write(p)
	if err != nil && n == 0 {
		g.wrote.Store(false)
	}
	return n, err
}

func (g *gate) Read(p []byte) (int, error) {
	n, err := g.Conn.Read(p)
	if err != nil {
		g.ended.Store(true)
	}
	return n, err
}
