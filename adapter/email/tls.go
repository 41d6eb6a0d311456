package email

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"os"
	"time"
)

// authorities are the system's, and those of the settings.
func (s *settings) authorities() (*x509.CertPool, error) {
	pem, err := os.ReadFile(s.ca)
	if err != nil {
		return nil, errors.New("cannot be read: " + err.Error())
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(pem) {
		return nil, errors.New("holds no certificate in PEM")
	}
	return roots, nil
}

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
