package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql/driver"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast/link"
)

const (
	bareSiteName     = "bare link"
	bareSiteSettings = "pages of 500 rows by number, 4 at a time, plain POSTs over TLS of framed messages; group commit of the rows that central has, by prepared statements; no checks, no JSON"
	barePageOf       = 500

	// seq, limit
	barePageAfter = `SELECT m.seq, m.id, b.payload FROM hf_message m JOIN hf_body b ON b.seq = m.seq WHERE m.seq > ?1 AND m.state = 0 ORDER BY m.seq LIMIT ?2`
	// seq, id, now
	bareNotice = `INSERT INTO hf_notification (seq, id, copy, channel, type, list, subject, site, instance, script, execution, parent, enqueued, bundle, created)
VALUES (?1, ?2, 0, 'mail', '` + noticeType + `', '` + noticeList + `', '` + noticeSubject + `', 'plant-0', 'filler-3', 'watch', '', '', ?3, ?1, ?3)`
	// seq, id, hash, now; the payload is with the message
	bareBundle = `INSERT INTO hf_bundle (seq, kind, source, id, hash, created, first, payload) VALUES (?1, 'notification', 'plant-0', ?2, ?3, ?4, ?1, x'')`
)

// openBareOffice opens a loop that commits in groups all rows that central has of a notification.
func openBareOffice(dir string) (*bareLoop, error) {
	l, err := startBare(dir, 0, nil)
	if err != nil {
		return nil, err
	}
	hash := make([]byte, 32)
	l.beside = func(m *bareMessage, now int64) error {
		return errors.Join(l.conn.exec(bareBundle, m.seq, m.id[:], hash, now), l.conn.exec(bareNotice, m.seq, m.id[:], now))
	}
	return l, nil
}

// bareIntake returns the HTTP handler of the bare office.
func bareIntake(l *bareLoop) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ms, err := readFrames(r.Body)
		if err == nil {
			err = l.enqueue(ms...)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
}

// trusting returns a client that trusts the certificate.
func trusting(cert string, connections int) (*http.Client, error) {
	text, err := os.ReadFile(cert)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		MaxIdleConnsPerHost: connections, TLSClientConfig: &tls.Config{RootCAs: pool},
	}}, nil
}

func bareSiteDrain(ctx context.Context, d drainCell) (v values, err error) {
	o, err := openBareOffice(d.central)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, o.Close()) }()
	files, err := makeCert(d.central)
	if err != nil {
		return nil, err
	}
	server, to, err := serveTLS(files, bareIntake(o))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	address, end, err := d.way(to)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end()) }()
	client, err := trusting(files.cert, link.AtOnce)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	conn, err := openBareFile(filepath.Join(d.site, "holdfast.db"))
	if err != nil {
		return nil, err
	}
	s := &bareSite{conn: conn}
	var all sync.WaitGroup
	errs := make([]error, link.AtOnce)
	for i := range errs {
		all.Go(func() { errs[i] = s.run(ctx, client, "https://"+address, began.Add(d.z.cutoff)) })
	}
	all.Wait()
	took := time.Since(began)
	return values{"rate": float64(s.sent) / took.Seconds()}, errors.Join(append(errs, conn.Close())...)
}

// bareSite sends pages of a file's rows.
type bareSite struct {
	mu   sync.Mutex // guards the connection
	conn *bareConn
	last int64
	sent int
}

func (s *bareSite) run(ctx context.Context, client *http.Client, url string, cutoff time.Time) error {
	for time.Now().Before(cutoff) {
		ms, err := s.page()
		if err != nil || len(ms) == 0 {
			return err
		}
		if err := send(ctx, client, url, ms); err != nil {
			return err
		}
		if err := s.settle(ms); err != nil {
			return err
		}
	}
	return nil
}

func (s *bareSite) page() (ms []bareMessage, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.conn.query(barePageAfter, func(row []driver.Value) {
		m := bareMessage{seq: row[0].(int64), payload: row[2].([]byte)}
		copy(m.id[:], row[1].([]byte))
		ms, s.last = append(ms, m), m.seq
	}, s.last, int64(barePageOf))
	return ms, err
}

func (s *bareSite) settle(ms []bareMessage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now().UnixMicro()
	s.sent += len(ms)
	return s.conn.tx(func() error {
		for i := range ms {
			if err := s.conn.exec(bareSettle, ms[i].seq, now); err != nil {
				return err
			}
		}
		return nil
	})
}
