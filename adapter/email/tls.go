package email

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"time"
)

// tokenTransport uses no proxy: a variable must not send secrets elsewhere.
func tokenTransport(roots *x509.CertPool) *http.Transport {
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 1,
		IdleConnTimeout:     30 * time.Second,
		ForceAttemptHTTP2:   true,
	}
}

// shown tells people how safe a connection is.
func shown(s *tls.ConnectionState) string {
	if s == nil {
		return ""
	}
	return tls.VersionName(s.Version) + " " + tls.CipherSuiteName(s.CipherSuite)
}
