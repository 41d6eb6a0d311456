package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
)

// config returns nil if t is empty. Errors quote nothing of the key.
func (t *TLS) config() (*tls.Config, error) {
	if *t == (TLS{}) {
		return nil, nil //nolint:nilnil // the usual one
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CA != "" {
		roots, err := x509.SystemCertPool()
		if err != nil {
			roots = x509.NewCertPool() // the system has no roots
		}
		if !roots.AppendCertsFromPEM([]byte(t.CA)) {
			return nil, errors.New("has no certificate in PEM form in ca")
		}
		conf.RootCAs = roots
	}
	if t.Cert == "" && t.Key == "" {
		return conf, nil
	}
	pair, err := tls.X509KeyPair([]byte(t.Cert), []byte(t.Key))
	if err != nil {
		return nil, errors.New("has no certificate and key in PEM form that belong together: give both, or none")
	}
	conf.Certificates = []tls.Certificate{pair}
	return conf, nil
}
