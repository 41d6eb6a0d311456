package exchange

import (
	"cmp"
	"container/list"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/idna"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/addressguard"
	"github.com/holdfast-mq/holdfast/internal/secrets"
)

// maxHeader is the most bytes that an answer may have before its body.
const maxHeader = 64 << 10

// Settings configure a Client. The zero value is ready to use, and keeps no idle connections.
type Settings struct {
	// Dial opens connections; Guard and Proxy have no effect then. Nil: TCP.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Guard decides which addresses may be reached. Behind a proxy it checks the host; the proxy
	// itself is exempt. Nil: all.
	Guard   *addressguard.Guard
	TLS     *tls.Config   // nil: TLS 1.2 and later, the system's roots
	Connect time.Duration // limits the connection, and then its TLS handshake; zero: 10 s
	Idle    int           // idle connections per host that are kept
	IdleAll int           // idle connections of all hosts that are kept; zero: no limit
	IdleFor time.Duration // how long they are kept; zero: 90 s
	// Proxy returns the proxy for a URL, or nil. FromEnvironment is one. Nil: there are no proxies.
	Proxy func(*url.URL) (*url.URL, error)
	Uses  *Uses // counts connections, also those of other clients; nil: nobody does
}

// Uses counts connections. The zero value is ready to use.
type Uses struct {
	Opened atomic.Int64 // connections
	Reused atomic.Int64 // requests over a connection that had been used before
}

// Client makes exchanges. It speaks only HTTP/1.1, where a connection carries one request at a
// time: so it knows whether a byte of a request has been sent. It follows no redirects, keeps no
// cookies, and does not decode bodies. It may be used concurrently.
type Client struct {
	idleMost, idleAll int
	idleFor           time.Duration
	conns             *http.Transport // opens connections, sends no requests
	uses              *Uses

	mu   sync.Mutex
	idle map[place][]*conn // most recently used last
	all  list.List         // of those, over all places, the longest idle first
}

// place is the address to which a connection leads.
type place struct{ scheme, address string }

func (p place) host() string {
	host, _, _ := net.SplitHostPort(p.address) // placeOf has joined them
	return host
}

// NewClient returns a Client. It does not connect.
func NewClient(s Settings) *Client {
	connect := cmp.Or(s.Connect, 10*time.Second)
	t := &http.Transport{
		DialContext: s.Dial, TLSHandshakeTimeout: connect, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
		Protocols: new(http.Protocols), MaxResponseHeaderBytes: maxHeader, DisableCompression: true, DisableKeepAlives: s.Idle == 0,
	}
	t.Protocols.SetHTTP1(true)
	if s.TLS != nil {
		t.TLSClientConfig = s.TLS.Clone()
		t.TLSClientConfig.NextProtos = nil // only HTTP/1.1 is spoken
	}
	if t.DialContext == nil {
		t.DialContext = s.dialer(&net.Dialer{Timeout: connect, KeepAlive: 15 * time.Second})
		if s.Proxy != nil {
			t.Proxy = func(r *http.Request) (*url.URL, error) { return s.Proxy(calling(r.Context()).url) }
		}
	}
	dial := t.DialContext
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		raw, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		g := &gate{Conn: raw}
		*calling(ctx).gate = g
		return g, nil
	}
	return &Client{idleMost: s.Idle, idleAll: s.IdleAll, idleFor: cmp.Or(s.IdleFor, 90*time.Second), conns: t, uses: cmp.Or(s.Uses, &Uses{}), idle: map[place][]*conn{}}
}

// Close closes idle connections. Exchanges under way go on.
func (c *Client) Close() {
	c.mu.Lock()
	all := c.idle
	c.idle = map[place][]*conn{}
	c.all.Init()
	c.mu.Unlock()
	for _, list := range all {
		for _, k := range list {
			k.end()
		}
	}
}

// Do makes one request and returns its answer. The request belongs to the client from then on; the
// caller closes the answer's Body. The failure's text is bounded and without the secrets of hide;
// nil hides nothing.
func (c *Client) Do(req *http.Request, hide func() *secrets.Set) (*http.Response, *holdfast.Failure) {
	at, err := placeOf(req.URL)
	if err != nil {
		return nil, Unanswered(req.Context(), err, false, hide)
	}
	if u := req.URL.User; u != nil && req.Header.Get("Authorization") == "" {
		password, _ := u.Password()
		req.SetBasicAuth(u.Username(), password)
	}
	k := c.take(at)
	reused := k != nil
	for {
		if k == nil {
			if k, err = c.connect(req, at); err != nil {
				return nil, Unanswered(req.Context(), err, false, hide)
			}
		}
		resp, err := k.RoundTrip(req)
		if err == nil {
			if reused {
				c.uses.Reused.Add(1)
			}
			resp.Body = &body{ReadCloser: resp.Body, over: func() { c.put(k) }}
			return resp, nil
		}
		left := k.gate.wrote.Load()
		k.end()
		if !reused || left || !rewind(req) {
			return nil, Unanswered(req.Context(), err, left, hide)
		}
		// The connection was closed while idle, and no byte of the request was sent.
		k, reused = nil, false
	}
}

// rewind prepares a request of which nothing was sent for another connection.
func rewind(req *http.Request) bool {
	if req.Context().Err() != nil {
		return false
	}
	if req.Body == nil || req.Body == http.NoBody {
		return true
	}
	if req.GetBody == nil {
		return false
	}
	again, err := req.GetBody()
	req.Body = again
	return err == nil
}

// Unanswered is Failure with a text for people.
func Unanswered(ctx context.Context, err error, left bool, hide func() *secrets.Set) *holdfast.Failure {
	f := Failure(ctx, err, left)
	f.Err = fit(f.Err, hide)
	return f
}

// placeOf returns the place of a URL.
func placeOf(u *url.URL) (place, error) {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	if port == "" || u.Hostname() == "" {
		return place{}, fmt.Errorf("scheme %q: must be http or https, with a host", u.Scheme)
	}
	host := u.Hostname()
	if ascii, err := idna.Lookup.ToASCII(host); err == nil {
		host = ascii // otherwise it is an address, or the name server reports the fault
	}
	return place{u.Scheme, net.JoinHostPort(host, port)}, nil
}

// body notes when an answer has been read to its end, or is given up.
type body struct {
	io.ReadCloser
	once sync.Once
	over func()
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.once.Do(b.over)
	}
	return n, err
}

func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.once.Do(b.over)
	return err
}
