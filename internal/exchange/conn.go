package exchange

import (
	"container/list"
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"
)

// conn is a connection that carries one request at a time.
type conn struct {
	*http.ClientConn
	gate  *gate
	at    place
	idle  *list.Element // its place among all idle ones
	timer *time.Timer   // closes it when it has been idle too long
}

// end closes the connection.
func (k *conn) end() {
	k.timer.Stop()
	_ = k.Close() // a reader gets an error
}

// calling returns what a dialer and a proxy need to know about their exchange.
func calling(ctx context.Context) call {
	c, _ := ctx.Value(callKey{}).(call) // connect has set it
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
	c.uses.Opened.Add(1)
	return k, nil
}

// take returns an idle connection that is not known to be closed, or nil.
func (c *Client) take(at place) *conn {
	for {
		c.mu.Lock()
		list := c.idle[at]
		if len(list) == 0 {
			c.mu.Unlock()
			return nil
		}
		k := list[len(list)-1]
		c.drop(k)
		c.mu.Unlock()
		k.timer.Stop()
		if k.Err() == nil {
			k.gate.open(true)
			return k
		}
	}
}

// put keeps a connection whose answer was read to its end. If there is no room, it closes the one
// that was idle longest, which the other side is most likely to have closed.
func (c *Client) put(k *conn) {
	if c.idleMost == 0 || k.Available() == 0 {
		k.end()
		return
	}
	c.mu.Lock()
	c.idle[k.at] = append(c.idle[k.at], k)
	k.idle = c.all.PushBack(k)
	var oldest *conn
	if mine := c.idle[k.at]; len(mine) > c.idleMost {
		oldest = mine[0]
	} else if c.idleAll > 0 && c.all.Len() > c.idleAll {
		oldest = c.all.Front().Value.(*conn) //nolint:forcetypeassert // the list has nothing else
	}
	if oldest != nil {
		c.drop(oldest)
	}
	k.timer.Reset(c.idleFor)
	c.mu.Unlock()
	if oldest != nil {
		oldest.end()
	}
}

// remove takes a connection out of the idle ones. It reports whether it was there.
func (c *Client) remove(k *conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.idle[k.at], k) {
		return false
	}
	c.drop(k)
	return true
}

// drop takes a connection out of the idle ones, among which it is. c.mu is held.
func (c *Client) drop(k *conn) {
	c.all.Remove(k.idle)
	list := c.idle[k.at]
	i := slices.Index(list, k)
	if c.idle[k.at] = slices.Delete(list, i, i+1); len(list) == 1 {
		delete(c.idle, k.at) // of a host that is not called any more
	}
}

// gate sits below TLS. It sends no byte of a request on a connection that the other side has closed
// while it was idle, and knows whether any byte was sent.
type gate struct {
	net.Conn
	used  atomic.Bool // it has carried requests before this one
	ended atomic.Bool // a read has failed
	wrote atomic.Bool // for the current request: true if a byte may have been sent
}

// open begins a request.
func (g *gate) open(used bool) {
	g.used.Store(used)
	g.wrote.Store(false)
}

// errStale is the error of a request on a closed connection.
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
