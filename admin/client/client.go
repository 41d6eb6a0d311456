package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/internal/exchange"
	"github.com/holdfast-mq/holdfast/internal/socket"
)

// ErrUnreachable is wrapped by the error of a request that reached no node.
var ErrUnreachable = errors.New("cannot reach the node")

// ErrScheme is wrapped together with ErrUnreachable if only one side speaks TLS.
var ErrScheme = errors.New("only one side speaks TLS")

// Client sends requests to a node. Its methods may be called concurrently. They return a *api.Problem if the
// node refuses, and wrap ErrUnreachable if it does not answer. They set no deadline; the context may.
type Client struct {
	base  *url.URL
	at    string // the address as it was given, for errors
	token string
	conf  exchange.Settings
	http  *exchange.Client

	outbox string // path of a site's messages; empty: the node's own
}

// New returns a client of the node at address: http://host:port, https://host:port, or
// unix:///path/of/socket. The token may be empty. Over http:// it is sent only to this machine.
func New(address, token string) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("node address %q: %w", address, errors.Unwrap(err))
	}
	conf := exchange.Settings{Connect: 30 * time.Second, Idle: 2, Proxy: exchange.FromEnvironment}
	if u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("node address %q: must end after its path, and name no user", u.Redacted())
	}
	path, isSocket := socket.Path(u)
	switch {
	case (u.Scheme == "http" || u.Scheme == "https") && u.Host != "":
		u.Path = strings.TrimSuffix(u.Path, "/")
	case isSocket:
		conf.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}
		u = &url.URL{Scheme: "http", Host: "localhost"}
	default:
		return nil, fmt.Errorf("node address %q: must be http://host:port, https://host:port or unix:///path/of/socket", address)
	}
	if token != "" && !api.WellFormed(token) {
		return nil, errors.New("the token is mistyped or cut short: it begins with hf_ and has 52 characters")
	}
	if token != "" && u.Scheme == "http" && !isSocket && !isLoopback(u.Hostname()) {
		return nil, fmt.Errorf("node address %q: a token would go there in clear, for everybody on the way; use https:// or a tunnel to the node's loopback", address)
	}
	return &Client{base: u, at: address, token: token, conf: conf, http: exchange.NewClient(conf)}, nil
}

// isLoopback does not resolve names: whoever answers for a name could change it.
func isLoopback(host string) bool {
	if host = strings.ToLower(host); host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// WithTLS returns a client that uses conf for a node at https.
func (c *Client) WithTLS(conf *tls.Config) *Client {
	own := *c
	own.conf.TLS = conf
	own.http = exchange.NewClient(own.conf)
	return &own
}

// Close closes idle connections.
func (c *Client) Close() { c.http.Close() }
