package httpcall

import (
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/holdfast-mq/holdfast/internal/addressguard"
	"github.com/holdfast-mq/holdfast/internal/exchange"
	"github.com/holdfast-mq/holdfast/internal/namedfile"
)

// TLS is what an https target needs besides the system's roots.
type TLS struct {
	CA        string // file with further authorities, PEM; empty: only the system's
	Cert, Key string // files of our own certificate; both or none. They are read again for each connection
}

// config returns nil if t is empty.
func (t TLS) config() (*tls.Config, error) {
	if t == (TLS{}) {
		return nil, nil
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CA != "" {
		roots, err := namedfile.Authorities(t.CA)
		if err != nil {
			return nil, fmt.Errorf("read CA: %w", err)
		}
		conf.RootCAs = roots
	}
	if (t.Cert == "") != (t.Key == "") {
		return nil, errors.New("a certificate needs its key, and a key its certificate")
	}
	if t.Cert != "" {
		if err := namedfile.OwnCertificate(conf, t.Cert, t.Key); err != nil {
			return nil, fmt.Errorf("read certificate: %w", err)
		}
	}
	return conf, nil
}

// newClient uses no proxy: an environment variable must not send calls to a local program
// elsewhere.
func newClient(t TLS, addresses []string, idle int) (*exchange.Client, error) {
	conf, err := t.config()
	if err != nil {
		return nil, err
	}
	guard, err := addressguard.New(addresses)
	if err != nil {
		return nil, fmt.Errorf("addresses: %w", err)
	}
	return exchange.NewClient(exchange.Settings{Guard: guard, TLS: conf, Idle: idle}), nil
}
