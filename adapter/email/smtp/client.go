package smtp

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"time"
)

// Timeouts are how long each step may take.
type Timeouts struct {
	Command time.Duration // until the reply to a command
	Piece   time.Duration // one piece of a mail
	Answer  time.Duration // the reply to a whole mail
}

var (
	errClosed = errors.New("the server has closed the connection")
	errOrder  = errors.New("smtp: a step that has no place here")
)

// Client is one connection. It is used by one goroutine at a time; Close may
// be called by another.
type Client struct {
	conn     net.Conn
	in       *bufio.Reader
	out      []byte // what is being written, used again and again
	spare    []byte // the beginning of a long line
	timeouts Timeouts
	within   time.Duration // for the replies that come now

	named      bool              // Hello was said, on this layer
	extensions map[string]string // in capital letters, with their parameters
	waiting    bool              // the server waits for a mail
	broken     error             // nothing can be sent any more
}

// New returns a client for a connection over which nothing was said.
func New(conn net.Conn, t Timeouts) *Client {
	return &Client{conn: conn, in: bufio.NewReader(conn), timeouts: t, within: t.Command}
}

// Close ends the connection at once.
func (c *Client) Close() error { return c.conn.Close() }

// Encrypt makes the connection a TLS one, before the greeting or after a
// StartTLS that the server has agreed to; ctx bounds the handshake. What was said
// before is forgotten, and what was said unasked is ErrTurn: it may come from
// somebody on the way.
func (c *Client) Encrypt(ctx context.Context, conf *tls.Config) (tls.ConnectionState, error) {
	if err := c.quiet(); err != nil {
		return tls.ConnectionState{}, err
	}
	if end, ok := ctx.Deadline(); ok {
		if err := c.conn.SetDeadline(end); err != nil {
			return tls.ConnectionState{}, c.fail(err)
		}
	}
	conn := tls.Client(c.conn, conf)
	if err := conn.HandshakeContext(ctx); err != nil {
		return tls.ConnectionState{}, c.fail(err)
	}
	c.conn, c.named, c.extensions = conn, false, nil
	c.in.Reset(conn)
	return conn.ConnectionState(), nil
}

// Greeting waits for what a server says first.
func (c *Client) Greeting(within time.Duration) (Reply, error) {
	if err := c.conn.SetDeadline(time.Now().Add(within)); err != nil {
		return Reply{}, c.fail(err)
	}
	return c.reply()
}

// Hello says who we are, and learns what the server offers. One that does not
// know EHLO is told by HELO.
func (c *Client) Hello(name string) (Reply, error) {
	if c.named {
		return Reply{}, errOrder
	}
	r, err := c.command("EHLO " + name)
	if err == nil && (r.Code == 500 || r.Code == 502) {
		r, err = c.command("HELO " + name)
		r.Text = ""
	}
	if err != nil || !r.OK() {
		return r, err
	}
	c.named, c.extensions = true, map[string]string{}
	_, offers, _ := strings.Cut(r.Text, "\n") // the first line is a name
	for line := range strings.SplitSeq(offers, "\n") {
		keyword, parameters, _ := strings.Cut(strings.TrimSpace(line), " ")
		c.extensions[strings.ToUpper(keyword)] = strings.TrimSpace(parameters)
	}
	return r, nil
}

// Offers says whether the server has named an extension, and with which
// parameters.
func (c *Client) Offers(keyword string) (parameters string, ok bool) {
	parameters, ok = c.extensions[keyword]
	return parameters, ok
}

// StartTLS asks for encryption; after a 220, Encrypt begins it.
func (c *Client) StartTLS() (Reply, error) { return c.command("STARTTLS") }

// Noop asks whether the server is still there.
func (c *Client) Noop(within time.Duration) (Reply, error) { return c.bounded("NOOP", within) }

// Quit says goodbye. Nothing depends on the answer.
func (c *Client) Quit(within time.Duration) (Reply, error) { return c.bounded("QUIT", within) }

// bounded is a command with another time-out.
func (c *Client) bounded(line string, within time.Duration) (Reply, error) {
	c.within = within
	defer func() { c.within = c.timeouts.Command }()
	return c.command(line)
}

// command sends one line, and returns the reply to it.
func (c *Client) command(line string) (Reply, error) {
	if err := c.say(line); err != nil {
		return Reply{}, err
	}
	r, err := c.reply()
	if err == nil && r.Code/100 == 3 {
		return Reply{}, c.fail(ErrTurn)
	}
	return r, err
}

// say sends one line.
func (c *Client) say(line string) error {
	if strings.ContainsAny(line, "\r\n") {
		return errOrder
	}
	c.out = append(append(c.out[:0], line...), '\r', '\n')
	return c.write(c.within)
}

// write sends what stands in the buffer, if nothing is left unread, and gives
// the reply as long.
func (c *Client) write(within time.Duration) error {
	if err := c.quiet(); err != nil {
		return err
	}
	if err := c.conn.SetDeadline(time.Now().Add(within)); err != nil {
		return c.fail(err)
	}
	if _, err := c.conn.Write(c.out); err != nil {
		return c.fail(err)
	}
	return nil
}

// quiet says that the server has said nothing that was not read.
func (c *Client) quiet() error {
	switch {
	case c.broken != nil:
		return c.broken
	case c.in.Buffered() > 0:
		return c.fail(ErrTurn)
	}
	return nil
}

// closed says that nothing can be sent any more.
func (c *Client) closed() bool { return c.broken != nil }

// fail ends the use of a connection of which nobody knows how it stands.
func (c *Client) fail(err error) error {
	c.broken = err
	return err
}
