package doctor

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
	"github.com/holdfast-mq/holdfast/internal/namedfile"
)

// askNode examines the node's address, and asks whatever answers there.
func askNode(ctx context.Context, o Options) (l ListenFound, r RunningFound) {
	url, conf := o.URL, o.TLS
	if o.Config != nil {
		l.Address = o.Config.Listen
		address, port := reachable(l.Address)
		l.AnyPort, l.Foreign = port == "0", isForeign(address)
		if !l.AnyPort && !l.Foreign {
			l.Taken, l.Err = dial(ctx, o, address)
		}
		if url == "" && l.Taken {
			url, conf = "http://"+address, nil
			if t := o.Config.TLS; t.Cert != "" {
				url, conf = "https://"+address, onlyOurs(t.Cert, t.Key)
			}
		}
	}
	if url != "" {
		r = askHealth(ctx, o, url, conf)
	}
	return l, r
}

// reachable returns the address at which a listener of this machine answers.
func reachable(listen string) (address, port string) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen, ""
	}
	switch host {
	case "", "0.0.0.0":
		host = "127.0.0.1"
	case "::":
		host = "::1"
	}
	return net.JoinHostPort(host, port), port
}

// isForeign reports whether an address belongs to no interface of this machine.
func isForeign(address string) bool {
	at, err := netip.ParseAddrPort(address)
	if err != nil || at.Addr().IsLoopback() {
		return false
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, a := range all {
		if own, err := netip.ParsePrefix(a.String()); err == nil && own.Addr() == at.Addr().WithZone("") {
			return false
		}
	}
	return true
}

func dial(ctx context.Context, o Options, address string) (taken bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	switch {
	case err == nil:
		return true, c.Close()
	case errors.Is(err, syscall.ECONNREFUSED), strings.Contains(err.Error(), "refused"): // Windows has its own code
		return false, nil
	}
	return false, err
}

// onlyOurs accepts the node's own certificate and no other: that certificate is seldom valid for the loopback.
func onlyOurs(cert, key string) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection is stricter: it accepts one certificate
		VerifyConnection: func(s tls.ConnectionState) error {
			pair, err := namedfile.KeyPair(cert, key)
			if err != nil {
				return fmt.Errorf("read our certificate: %w", err)
			}
			if len(s.PeerCertificates) == 0 || !bytes.Equal(s.PeerCertificates[0].Raw, pair.Leaf.Raw) {
				return errors.New("it does not show the configured certificate: restart the node if the certificate was renewed")
			}
			return nil
		},
	}
}

func askHealth(ctx context.Context, o Options, url string, conf *tls.Config) RunningFound {
	r := RunningFound{URL: url}
	c, err := client.New(url, o.Token)
	if err != nil {
		r.Err = err
		return r
	}
	if conf != nil {
		c = c.WithTLS(conf)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	h, err := c.Health(ctx)
	if err == nil && h.Node != "" && h.Status != "" {
		r.Health, r.Node = &h, true
		if keys, err := c.Keys().List(ctx); err == nil {
			r.Keys = &keys
		} else if p, ok := errors.AsType[*api.Problem](err); !ok || p.Status != http.StatusNotFound { // sites have none
			r.KeysErr = err
		}
		return r
	}
	if r.Err = err; err == nil {
		r.Err = errors.New("it does not answer as a node does")
	}
	// Our API answers with problems of its own types; a stranger may answer anything.
	if p, ok := errors.AsType[*api.Problem](err); ok {
		r.Node = p.Type != "about:blank" && p.Type != ""
	}
	return r
}
