package chat

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// tls is nil where nothing is said. Our own certificate is read again for each
// connection.
func (s *settings) tls() (*tls.Config, error) {
	if s.ca == "" && s.cert == "" {
		return nil, nil
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.ca != "" {
		pem, err := os.ReadFile(s.ca)
		if err != nil {
			return nil, &holdfast.FieldError{Field: "ca", Value: s.ca, Problem: "cannot be read: " + err.Error()}
		}
		roots, err := x509.SystemCertPool()
		if err != nil {
			roots = x509.NewCertPool()
		}
		if !roots.AppendCertsFromPEM(pem) {
			return nil, &holdfast.FieldError{Field: "ca", Value: s.ca, Problem: "holds no certificate in PEM"}
		}
		conf.RootCAs = roots
	}
	if s.cert != "" && s.key != "" {
		if _, err := tls.LoadX509KeyPair(s.cert, s.key); err != nil {
			return nil, &holdfast.FieldError{Field: "cert", Value: s.cert, Problem: "and its key cannot be used: " + err.Error()}
		}
		conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			c, err := tls.LoadX509KeyPair(s.cert, s.key)
			return &c, err
		}
	}
	return conf, nil
}

// newTransport uses no proxy: a variable must not send secrets elsewhere.
func newTransport(conf *tls.Config) *http.Transport {
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:     conf,
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: atOnce,
		IdleConnTimeout:     90 * time.Second,
		ForceAttemptHTTP2:   true,
	}
}
