package transporttest

import (
	"context"
	"errors"
	"net"
	"sync"
)

// ErrCut is the error of both directions of a cut connection.
var ErrCut = errors.New("connection cut by the test")

// Limit says after how many bytes a connection breaks, counted at the dialling side. A negative
// number never breaks it.
type Limit struct{ Written, Read int }

// Whole returns the limit of a connection that never breaks.
func Whole() Limit { return Limit{-1, -1} }

// Cutter opens connections that break in the middle of a request or reply.
// It may be used concurrently.
type Cutter struct {
	Under func(ctx context.Context, network, address string) (net.Conn, error) // nil: a net.Dialer
	Plan  func(n int) Limit                                                    // limit of connection n, counted from 0

	mu     sync.Mutex
	dialed int
}

// Dial opens the next connection.
func (c *Cutter) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	dial := c.Under
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	conn, err := dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	n := c.dialed
	c.dialed++
	c.mu.Unlock()
	return &cutConn{Conn: conn, limit: c.Plan(n)}, nil
}

// Dialed returns how many connections have been opened.
func (c *Cutter) Dialed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dialed
}

type cutConn struct {
	net.Conn
	mu            sync.Mutex
	limit         Limit
	written, read int
}

// room takes up to want bytes from the rest of a limit.
func (c *cutConn) room(used *int, limit, want int) (allowed int, cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if limit < 0 {
		return want, false
	}
	allowed = min(want, limit-*used)
	*used += allowed
	return allowed, allowed < want
}

func (c *cutConn) Write(p []byte) (int, error) {
	allowed, cut := c.room(&c.written, c.limit.Written, len(p))
	if !cut {
		return c.Conn.Write(p)
	}
	n := 0
	if allowed > 0 { // an empty write to a pipe would wait for a reader
		var err error
		if n, err = c.Conn.Write(p[:allowed]); err != nil {
			return n, err
		}
	}
	c.Close()
	return n, ErrCut
}

func (c *cutConn) Read(p []byte) (int, error) {
	if c.limit.Read < 0 {
		return c.Conn.Read(p)
	}
	c.mu.Lock()
	left := c.limit.Read - c.read
	c.mu.Unlock()
	if left <= 0 {
		// The cut comes when the peer sends the next byte, not before.
		if _, err := c.Conn.Read(make([]byte, 1)); err != nil {
			return 0, err
		}
		c.Close()
		return 0, ErrCut
	}
	n, err := c.Conn.Read(p[:min(len(p), left)])
	c.mu.Lock()
	c.read += n
	c.mu.Unlock()
	return n, err
}
