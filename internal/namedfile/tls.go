package namedfile

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
)

// mostPEM is larger than any bundle of certificates that is in use.
const mostPEM = 1 << 20

// ErrNoCertificate means that a file has no certificate in PEM form.
var ErrNoCertificate = errors.New("it holds no certificate in PEM form")

// PEM returns the content of a file of certificates, or of a key.
func PEM(path string) ([]byte, error) { return Read(path, mostPEM) }

// Authorities returns the system's authorities and those of a file.
func Authorities(path string) (*x509.CertPool, error) {
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool() // the system has no roots; trust only the file's
	}
	return roots, AddAuthorities(roots, path)
}

// AddAuthorities adds the certificates of a file to a pool.
func AddAuthorities(pool *x509.CertPool, path string) error {
	pem, err := PEM(path)
	if err != nil {
		return err
	}
	if !pool.AppendCertsFromPEM(pem) {
		return fmt.Errorf("read %s: %w", path, ErrNoCertificate)
	}
	return nil
}

// KeyPair returns the certificate of one file with the key of another.
func KeyPair(cert, key string) (tls.Certificate, error) {
	certPEM, err := PEM(cert)
	if err != nil {
		return tls.Certificate{}, err
	}
	keyPEM, err := PEM(key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(certPEM, keyPEM)
}

// OwnCertificate sets the client certificate of conf. It reads the files now, to report a fault,
// and again for each connection, so that a renewed certificate needs no restart.
func OwnCertificate(conf *tls.Config, cert, key string) error {
	if _, err := KeyPair(cert, key); err != nil {
		return err
	}
	conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		c, err := KeyPair(cert, key)
		return &c, err
	}
	return nil
}
