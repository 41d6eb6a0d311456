package chat

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
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
	var faults []error
	fault := func(field, value, problem string) {
		faults = append(faults, &holdfast.FieldError{Field: "settings." + field, Value: clip(value, 200), Problem: problem})
	}
	if s.ca != "" {
		roots, err := x509.SystemCertPool()
		if err != nil {
			roots = x509.NewCertPool()
		}
		conf.RootCAs = roots
		if pem, err := os.ReadFile(s.ca); err != nil {
			fault("ca", s.ca, "cannot be read: "+err.Error())
		} else if !roots.AppendCertsFromPEM(pem) {
			fault("ca", s.ca, "holds no certificate in PEM")
		}
	}
	if s.cert != "" && s.key != "" {
		if _, err := tls.LoadX509KeyPair(s.cert, s.key); err != nil {
			fault("cert", s.cert, "cannot be used with its key: "+err.Error())
		}
		conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			c, err := tls.LoadX509KeyPair(s.cert, s.key)
			return &c, err
		}
	}
	return conf, errors.Join(faults...)
}

// newTransport uses no proxy: a variable must not send secrets elsewhere.
func newTransport(conf *tls.Config) *http.Transport {
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:     conf,
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: atOnce,
		IdleConnTimeout:     30 * time.Second,
		ForceAttemptHTTP2:   true,
	}
}
