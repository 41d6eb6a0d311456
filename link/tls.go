package link

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast/internal/namedfile"
)

// Files are those of TLS at one end, in PEM form; empty: none. They may be
// replaced at any time: what connects after that uses the new ones.
type Files struct {
	CA        string // whom to trust: beside the system's roots at a site, for client certificates at central
	Cert, Key string // of this end
}

// stamp tells whether any of them has changed.
func (f Files) stamp() string {
	var all strings.Builder
	for _, name := range []string{f.CA, f.Cert, f.Key} {
		if info, err := os.Stat(name); name != "" && err == nil {
			_, _ = fmt.Fprint(&all, info.ModTime().UnixNano(), " ", info.Size())
		}
		_ = all.WriteByte('|')
	}
	return all.String()
}

// pair loads the certificate, if there is one.
func (f Files) pair() ([]tls.Certificate, error) {
	if f.Cert == "" && f.Key == "" {
		return nil, nil
	}
	c, err := namedfile.KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("read certificate %s with key %s: %w", f.Cert, f.Key, err)
	}
	return []tls.Certificate{c}, nil
}

// addTo adds the authorities of the CA file to a pool.
func (f Files) addTo(pool *x509.CertPool) error {
	if err := namedfile.AddAuthorities(pool, f.CA); err != nil {
		return fmt.Errorf("read CA: %w", err)
	}
	return nil
}

// client is the configuration of a site as of now; nil if no file is named.
func (f Files) client() (*tls.Config, error) {
	if f == (Files{}) {
		return nil, nil //nolint:nilnil // the defaults are meant
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	var err error
	if conf.Certificates, err = f.pair(); err != nil {
		return nil, err
	}
	if f.CA != "" {
		if conf.RootCAs, err = x509.SystemCertPool(); err != nil {
			conf.RootCAs = x509.NewCertPool() // the system has none: the file's are all
		}
		if err := f.addTo(conf.RootCAs); err != nil {
			return nil, err
		}
	}
	return conf, nil
}

// reloadEvery is how soon a file that was replaced counts.
const reloadEvery = time.Second

// ServerTLS is a listener's configuration from files that may be replaced while
// it listens. With a CA it asks who connects for a certificate and verifies one
// that is given; CentralConfig.ClientCerts makes that a condition of the link.
// A replacement that cannot be read changes nothing, and failed hears of it.
func ServerTLS(f Files, failed func(error)) (*tls.Config, error) {
	if f.Cert == "" {
		return nil, errors.New("server certificate: none is named")
	}
	first, err := f.server()
	if err != nil {
		return nil, err
	}
	r := &reloading{files: f, now: first, stamp: f.stamp(), looked: time.Now(), failed: failed}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: first.NextProtos, Certificates: first.Certificates,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return r.current(), nil },
	}, nil
}

func (f Files) server() (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	var err error
	if conf.Certificates, err = f.pair(); err != nil {
		return nil, err
	}
	if f.CA != "" {
		conf.ClientCAs, conf.ClientAuth = x509.NewCertPool(), tls.VerifyClientCertIfGiven
		if err := f.addTo(conf.ClientCAs); err != nil {
			return nil, err
		}
	}
	return conf, nil
}

// reloading is a configuration that follows its files.
type reloading struct {
	files  Files
	failed func(error)

	mu     sync.Mutex
	now    *tls.Config
	stamp  string
	looked time.Time
}

func (r *reloading) current() *tls.Config {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.looked) < reloadEvery {
		return r.now
	}
	r.looked = time.Now()
	stamp := r.files.stamp()
	if stamp == r.stamp {
		return r.now
	}
	conf, err := r.files.server()
	if err != nil {
		if r.failed != nil {
			r.failed(fmt.Errorf("certificates not reloaded: %w", err))
		}
		return r.now // perhaps only one of them is written yet: looked at again
	}
	r.now, r.stamp = conf, stamp
	return r.now
}
