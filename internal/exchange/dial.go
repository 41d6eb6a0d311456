package exchange

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/holdfast-mq/holdfast/internal/addressguard"
)

// FromEnvironment returns the proxy that the environment names for a URL.
func FromEnvironment(u *url.URL) (*url.URL, error) {
	return http.ProxyFromEnvironment(&http.Request{URL: u})
}

// dialer returns what opens the connections of a client.
func (s *Settings) dialer(d *net.Dialer) func(ctx context.Context, network, address string) (net.Conn, error) {
	guarded := s.Guard.Dialer(d)
	if s.Guard == nil || s.Proxy == nil {
		return guarded
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		u := calling(ctx).url
		switch proxy, err := s.Proxy(u); {
		case err != nil:
			return nil, err
		case proxy == nil:
			return guarded(ctx, network, address)
		}
		at, err := placeOf(u)
		if err != nil {
			return nil, err
		}
		if _, err := s.Guard.Vet(ctx, at.host()); err != nil {
			return nil, err
		}
		return d.DialContext(ctx, network, address)
	}
}

// TakesConnections opens a connection and sends nothing: a request could have an effect. A nil guard
// allows all addresses.
func TakesConnections(ctx context.Context, guard *addressguard.Guard, address string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c, err := guard.Dialer(&net.Dialer{})(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return c.Close()
}

// Address returns host and port of a URL. It leaves out the rest, which may contain a password.
func Address(of string) string {
	u, err := url.Parse(of)
	if err != nil {
		return "its address cannot be read"
	}
	port := u.Port()
	if port == "" {
		port = "80"
		if u.Scheme == "https" {
			port = "443"
		}
	}
	return net.JoinHostPort(u.Hostname(), port)
}
