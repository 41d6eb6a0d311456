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

// Files names the TLS files of one end, in PEM form. Empty: no file. They may be replaced at any
// time; new connections use the new files.
type Files struct {
	CA        string // authorities to trust: at a site beside the system's, at central for client certificates
	Cert, Key string // of this end
}

// stamp changes when any of the files has changed.
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

// pair loads the certificate if one is named.
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

// client returns the current TLS configuration of a site, or nil if no file is named.
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
			conf.RootCAs = x509.NewCertPool() // the system has no roots; trust only the file's
		}
		if err := f.addTo(conf.RootCAs); err != nil {
			return nil, err
		}
	}
	return conf, nil
}

// reloadEvery is how soon a replaced file takes effect.
const reloadEvery = time.Second

// ServerTLS returns a listener's configuration whose files may be replaced while it listens. With a
// CA it requests a client certificate and verifies it if one is given; CentralConfig.ClientCerts
// makes one mandatory for the link. If a replacement cannot be read, nothing changes and failed is
// called.
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
		return r.now // perhaps only one of the files is written yet; the next look decides
	}
	r.now, r.stamp = conf, stamp
	return r.now
}
