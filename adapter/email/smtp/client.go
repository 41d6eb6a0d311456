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

// Timeouts limit each step.
type Timeouts struct {
	Command time.Duration // until the reply to a command
	Piece   time.Duration // to write one piece of a mail
	Answer  time.Duration // until the reply to a whole mail
}

var (
	errClosed = errors.New("the server has closed the connection")
	errOrder  = errors.New("smtp: a step that has no place here")
)

// Client is one connection. One goroutine at a time may use it; another may call Close.
type Client struct {
	conn     net.Conn
	in       *bufio.Reader
	out      []byte // write buffer
	spare    []byte // beginning of a long line
	timeouts Timeouts
	within   time.Duration // time limit for the replies that come now

	named      bool              // Hello succeeded on this layer of security
	extensions map[string]string // in upper case, with their parameters
	waiting    bool              // the server waits for a mail
	broken     error             // set once nothing can be sent any more
}

// New returns a client for a fresh connection.
func New(conn net.Conn, t Timeouts) *Client {
	return &Client{conn: conn, in: bufio.NewReader(conn), timeouts: t, within: t.Command}
}

// Close ends the connection at once.
func (c *Client) Close() error { return c.conn.Close() }

// Encrypt starts TLS on the connection, before the greeting or after a StartTLS that the server
// accepted. ctx limits the handshake. What the server said before is forgotten. Anything that it
// said unasked is ErrTurn: it may come from an attacker on the way.
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

// Greeting waits for the server's greeting.
func (c *Client) Greeting(within time.Duration) (Reply, error) {
	if err := c.conn.SetDeadline(time.Now().Add(within)); err != nil {
		return Reply{}, c.fail(err)
	}
	return c.reply()
}

// Hello says who we are and learns what the server offers. If the server does not know EHLO, it
// uses HELO.
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
	_, offers, _ := strings.Cut(r.Text, "\n") // the first line is the server's name
	for line := range strings.SplitSeq(offers, "\n") {
		keyword, parameters, _ := strings.Cut(strings.TrimSpace(line), " ")
		c.extensions[strings.ToUpper(keyword)] = strings.TrimSpace(parameters)
	}
	return r, nil
}

// Offers reports whether the server offers an extension, and returns its parameters.
func (c *Client) Offers(keyword string) (parameters string, ok bool) {
	parameters, ok = c.extensions[keyword]
	return parameters, ok
}

// StartTLS asks for encryption. After a 220, call Encrypt.
func (c *Client) StartTLS() (Reply, error) { return c.command("STARTTLS") }

// Noop checks that the server still answers.
func (c *Client) Noop(within time.Duration) (Reply, error) { return c.bounded("NOOP", within) }

// Quit ends the session. Nothing depends on the answer.
func (c *Client) Quit(within time.Duration) (Reply, error) { return c.bounded("QUIT", within) }

// bounded sends a command with its own time-out.
func (c *Client) bounded(line string, within time.Duration) (Reply, error) {
	c.within = within
	defer func() { c.within = c.timeouts.Command }()
	return c.command(line)
}

// command sends one line and returns its reply.
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

// write sends the contents of the buffer, unless something is left unread. It allows the given time
// for sending, and as much for the reply.
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

// quiet returns an error if the server has said something that was not read.
func (c *Client) quiet() error {
	switch {
	case c.broken != nil:
		return c.broken
	case c.in.Buffered() > 0:
		return c.fail(ErrTurn)
	}
	return nil
}

// closed reports that nothing can be sent any more.
func (c *Client) closed() bool { return c.broken != nil }

// fail ends the use of a connection whose state is unknown.
func (c *Client) fail(err error) error {
	c.broken = err
	return err
}
