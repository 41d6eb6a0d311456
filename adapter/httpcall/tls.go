package httpcall

import (
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/holdfast-mq/holdfast/internal/exchange"
	"github.com/holdfast-mq/holdfast/internal/namedfile"
)

// TLS is what an https target needs beyond the system's trust.
type TLS struct {
	CA        string // file with further certificates of authorities, PEM; empty: the system's only
	Cert, Key string // files of our own certificate; both or none. They are read again for each connection
}

// config is nil where nothing is said.
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

// newClient uses no proxy: for a local program a variable must not send
// calls elsewhere.
func newClient(conf *tls.Config, idle int) *exchange.Client {
	return exchange.NewClient(exchange.Settings{TLS: conf, Idle: idle})
}
