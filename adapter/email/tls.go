package email

import (
	"crypto/tls"
	"crypto/x509"

	"github.com/holdfast-mq/holdfast/internal/addressguard"
	"github.com/holdfast-mq/holdfast/internal/exchange"
)

// tokenClient uses no proxy: an environment variable must not send secrets elsewhere.
func tokenClient(roots *x509.CertPool, guard *addressguard.Guard) *exchange.Client {
	return exchange.NewClient(exchange.Settings{Guard: guard, TLS: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}, Idle: 1})
}

// shown describes the TLS connection for people.
func shown(s *tls.ConnectionState) string {
	if s == nil {
		return ""
	}
	return tls.VersionName(s.Version) + " " + tls.CipherSuiteName(s.CipherSuite)
}
