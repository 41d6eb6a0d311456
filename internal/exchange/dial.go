package exchange

import (
	"context"
	"net"
	"net/url"
	"time"
)

// TakesConnections opens a connection and sends nothing: a request could have an effect.
func TakesConnections(ctx context.Context, address string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
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
