package node

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast/config"
)

// certificates are what the listener shows, and whom it asks for one. They are
// read again when a file has changed: a renewed certificate needs no restart.
type certificates struct {
	files config.TLS
	log   *slog.Logger

	mu     sync.Mutex
	looked time.Time
	stamps [3]stamp
	config *tls.Config
}

// stamp tells one content of a file from another.
type stamp struct {
	size    int64
	changed time.Time
}

// lookAgain is how often, at most, the files are looked at.
const lookAgain = time.Second

// newCertificates reads the files, or says what is wrong with them.
func newCertificates(files config.TLS, log *slog.Logger) (*certificates, error) {
	c := &certificates{files: files, log: log, looked: time.Now()}
	c.stamps = c.look()
	var err error
	c.config, err = readCertificates(files)
	return c, err
}

// serverConfig asks for each connection what holds now.
func (c *certificates) serverConfig() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.current(), nil },
	}
}

func (c *certificates) current() *tls.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) < lookAgain {
		return c.config
	}
	c.looked = time.Now()
	now := c.look()
	if now == c.stamps {
		return c.config
	}
	fresh, err := readCertificates(c.files)
	if err != nil { // as while the second of two files is being written
		c.log.Error("certificate not read again, the old one stays in use", slog.Any("error", err))
		return c.config
	}
	c.stamps, c.config = now, fresh
	c.log.Info("certificate read again", slog.String("file", c.files.Cert))
	return c.config
}

func (c *certificates) look() (all [3]stamp) {
	for i, file := range []string{c.files.Cert, c.files.Key, c.files.Clients} {
		if info, err := os.Stat(file); err == nil {
			all[i] = stamp{info.Size(), info.ModTime()}
		}
	}
	return all
}

func readCertificates(files config.TLS) (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		return nil, fmt.Errorf("load certificate %s with key %s: %w", files.Cert, files.Key, err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2", "http/1.1"}}
	if files.Clients == "" {
		return c, nil
	}
	pem, err := os.ReadFile(files.Clients)
	if err != nil {
		return nil, fmt.Errorf("read CAs of clients: %w", err)
	}
	c.ClientCAs, c.ClientAuth = x509.NewCertPool(), tls.VerifyClientCertIfGiven // sites have to; people have tokens
	if !c.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read CAs of clients %s: %w", files.Clients, errors.New("it holds no certificate in PEM form"))
	}
	return c, nil
}
