package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"github.com/holdfast-mq/holdfast/internal/exchange"
	"github.com/holdfast-mq/holdfast/internal/socket"
	"github.com/holdfast-mq/holdfast/wire"
)

// dialer opens connections, like net.Dialer.DialContext.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// endpoint is the address of a peer and how a client reaches it.
type endpoint struct {
	base    string // the protocol's paths are appended
	dial    dialer // nil: the default dialer
	away    bool   // the peer is another machine that its certificate identifies
	private bool   // nobody between the two can listen: TLS, the loopback or a socket
}

// parseAddress reads "https://host[:port][/prefix]", "http://…" or "unix:///path/to/socket". The
// address may end in the protocol's own path.
func parseAddress(text string) (endpoint, error) {
	bad := func(problem string) (endpoint, error) {
		return endpoint{}, fmt.Errorf("url: %s; give https://host[:port][/prefix] or unix:///path/to/socket", problem)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return bad("it cannot be read") // err quotes the text, which may hold a password
	case u.User != nil:
		return bad("it must not hold a user or password")
	case u.RawQuery != "" || u.Fragment != "":
		return bad("it must not have a query or fragment")
	}
	switch u.Scheme {
	case "http", "https":
		if u.Hostname() == "" {
			return bad("it has no host")
		}
		prefix := strings.TrimSuffix(strings.TrimSuffix(u.EscapedPath(), "/"), wire.ReceivePath)
		return endpoint{base: u.Scheme + "://" + u.Host + prefix, private: u.Scheme == "https" || isLoopback(u.Hostname()), away: u.Scheme == "https" && !isLoopback(u.Hostname())}, nil
	case socket.Scheme:
		path, ok := socket.Path(u)
		if !ok {
			return bad("a socket needs an absolute path")
		}
		return endpoint{
			base: "http://unix", private: true,
			dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
				var d net.Dialer
				return d.DialContext(ctx, "unix", path)
			},
		}, nil
	}
	return bad(fmt.Sprintf("scheme %q is not known", u.Scheme))
}

// isLoopback reports whether host is "localhost" or a loopback address.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// client makes the HTTP client for e.
func (c *ClientConfig) client(e endpoint) (*exchange.Client, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.TLS != nil {
		conf = c.TLS.Clone()
	}
	if len(c.CA) > 0 {
		pool := conf.RootCAs
		if pool == nil {
			pool = systemRoots()
		}
		pool = pool.Clone()
		if !pool.AppendCertsFromPEM(c.CA) {
			return nil, errors.New("ca: no certificate in PEM form found")
		}
		conf.RootCAs = pool
	}
	if e.dial != nil && c.Dial != nil {
		return nil, errors.New("dial: must not be set for a unix address")
	}
	dial := c.Dial
	if e.dial != nil {
		dial = e.dial
	}
	return exchange.NewClient(exchange.Settings{Dial: dial, TLS: conf, Connect: c.DialTimeout, Idle: c.Concurrency, Proxy: exchange.FromEnvironment}), nil
}

// systemRoots returns the system's roots, or an empty pool if the system has none; then only the
// given CA is trusted.
func systemRoots() *x509.CertPool {
	pool, err := x509.SystemCertPool()
	if err != nil {
		return x509.NewCertPool()
	}
	return pool
}
