package link_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/bearer"
	"github.com/holdfast-mq/holdfast/internal/certtest"
	"github.com/holdfast-mq/holdfast/link"
	"github.com/holdfast-mq/holdfast/link/sites"
)

// secure makes central listen with TLS.
func (w *world) secure(conf *tls.Config) {
	w.away()
	w.listen(func(srv *http.Server, l net.Listener) error {
		srv.TLSConfig = conf
		return srv.ServeTLS(l, "", "")
	})
}

// replace writes one set of files over another, as an operator or a tool for
// certificates does.
func replace(t *testing.T, with certtest.Files, f link.Files) {
	t.Helper()
	for from, to := range map[string]string{with.Cert: f.Cert, with.Key: f.Key} {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, text, 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Now()
		if err := os.Chtimes(to, at, at); err != nil { // in virtual time
			t.Fatal(err)
		}
	}
}

// Edge 63: certificates of both ends end and are replaced; nobody restarts
// anything. A site without a certificate of central's authority is refused.
func TestCertificatesAreReplacedWithoutARestart(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		t := w.t
		dir := t.TempDir()
		first, client := certtest.New(t, 3*time.Hour), certtest.New(t, 3*time.Hour, "plant-7")
		server := link.Files{CA: client.Cert, Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
		replace(t, first, server)
		var failures []string
		conf, err := link.ServerTLS(server, func(err error) { failures = append(failures, err.Error()) })
		if err != nil {
			t.Fatal(err)
		}
		ca := filepath.Join(dir, "ca.pem")
		if err := os.WriteFile(ca, first.PEM, 0o600); err != nil {
			t.Fatal(err)
		}
		w.secure(conf)
		w.url, w.tls = "https://127.0.0.1", link.Files{CA: ca, Cert: client.Cert, Key: client.Key}
		p := w.site("plant-7")
		p.run(true)
		defer p.stop()
		p.put(0, 10)
		p.delivered(time.Minute)

		time.Sleep(2 * time.Hour)
		if err := os.WriteFile(server.Key, []byte("half"), 0o600); err != nil { // half replaced
			t.Fatal(err)
		}
		p.put(10, 20)
		p.delivered(time.Minute)
		second := certtest.New(t, 90*24*time.Hour)
		replace(t, second, server)
		other := certtest.New(t, 90*24*time.Hour, "plant-7")
		replace(t, other, link.Files{Cert: client.Cert, Key: client.Key})
		if err := os.WriteFile(ca, append(first.PEM, second.PEM...), 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		p.put(20, 30)
		p.delivered(5 * time.Minute)

		bare := p.conf
		bare.TLS = link.Files{CA: ca}
		s, err := link.NewSite(bare)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		_, err = s.Deliver(t.Context(), message(99))
		if f := holdfast.AsFailure(err); f.Outcome != holdfast.LaneFault || f.Code != "certificate_missing" {
			t.Errorf("without a certificate: got %v", err)
		}
		for _, f := range failures {
			if !strings.Contains(f, "not reloaded") {
				t.Errorf("got %s", f)
			}
		}
	}, func(c *link.CentralConfig) { c.ClientCerts = link.SiteCert })
}

func TestCertificatesAreChecked(t *testing.T) {
	t.Parallel()
	good := certtest.New(t, time.Hour)
	for name, f := range map[string]link.Files{
		"none": {}, "no key": {Cert: good.Cert}, "no file": {Cert: good.Cert, Key: "nowhere"}, "no ca": {Cert: good.Cert, Key: good.Key, CA: good.Key},
	} {
		if _, err := link.ServerTLS(f, nil); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

// F1-15: a certificate is that of one site. With another's it neither enrolls,
// which leaves its token unspent, nor does its credential let it in.
func TestACertificateIsThatOfItsSite(t *testing.T) {
	t.Parallel()
	for _, kind := range []link.ClientCerts{link.SiteCert, link.AnyCert} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			within(t, func(w *world) {
				t := w.t
				server, a, b := certtest.New(t, time.Hour), certtest.New(t, time.Hour, "plant-a"), certtest.New(t, time.Hour, "x", "Plant-B")
				authorities := filepath.Join(t.TempDir(), "clients.pem")
				if err := os.WriteFile(authorities, append(a.PEM, b.PEM...), 0o600); err != nil {
					t.Fatal(err)
				}
				conf, err := link.ServerTLS(link.Files{CA: authorities, Cert: server.Cert, Key: server.Key}, nil)
				if err != nil {
					t.Fatal(err)
				}
				w.secure(conf)
				w.url = "https://127.0.0.1"
				ours, others := link.Files{CA: server.Cert, Cert: b.Cert, Key: b.Key}, link.Files{CA: server.Cert, Cert: a.Cert, Key: a.Key}
				token, err := w.central.Add(t.Context(), "plant-b", "")
				if err != nil {
					t.Fatal(err)
				}
				enroll := link.EnrollConfig{URL: w.url, Token: token, File: filepath.Join(t.TempDir(), "credential"), TLS: others, Dial: w.connect}
				deliver := func(with link.Files) error {
					s, err := link.NewSite(link.SiteConfig{URL: w.url, TLS: with, File: enroll.File, Outbox: open(t, "plant-b"+filepath.Base(with.Cert)), Dial: w.connect})
					if err != nil {
						t.Fatal(err)
					}
					defer s.Close()
					_, err = s.Deliver(t.Context(), message(1))
					return err
				}
				if kind == link.AnyCert {
					if _, err := link.Enroll(t.Context(), enroll); err != nil {
						t.Error(err)
					}
					if err := deliver(others); err != nil {
						t.Error(err)
					}
					return
				}
				if _, err := link.Enroll(t.Context(), enroll); err == nil || !strings.Contains(err.Error(), "must name site plant-b as its common name or a DNS name; it names: ") || !strings.Contains(err.Error(), "plant-a") {
					t.Errorf("with another's certificate it enrolls: %v", err)
				}
				enroll.TLS = ours
				if _, err := link.Enroll(t.Context(), enroll); err != nil {
					t.Errorf("the token is spent: %v", err)
				}
				if f := holdfast.AsFailure(deliver(others)); f == nil || f.Outcome != holdfast.LaneFault || f.Code != "certificate_of_another" {
					t.Errorf("with another's certificate it delivers: %v", f)
				}
				if err := deliver(ours); err != nil {
					t.Errorf("with its own certificate: %v", err)
				}
			}, func(c *link.CentralConfig) { c.ClientCerts = kind })
		})
	}
}

// F1-15: where nobody can tell whose a token is, its certificate is not taken on
// trust: nobody enrolls, and the token stays unspent.
func TestNobodyEnrollsUncertified(t *testing.T) {
	t.Parallel()
	blind := &tokenless{}
	within(t, func(w *world) {
		t := w.t
		server, a := certtest.New(t, time.Hour), certtest.New(t, time.Hour, "plant-a")
		conf, err := link.ServerTLS(link.Files{CA: a.Cert, Cert: server.Cert, Key: server.Key}, nil)
		if err != nil {
			t.Fatal(err)
		}
		w.secure(conf)
		w.url = "https://127.0.0.1"
		token, err := w.central.Add(t.Context(), "plant-b", "")
		if err != nil {
			t.Fatal(err)
		}
		_, err = link.Enroll(t.Context(), link.EnrollConfig{
			URL: w.url, Token: token, File: filepath.Join(t.TempDir(), "credential"), TLS: link.Files{CA: server.Cert, Cert: a.Cert, Key: a.Key}, Dial: w.connect,
		})
		sites, listed := w.central.Sites(t.Context())
		if err == nil || listed != nil || len(sites) != 1 || !sites[0].Enrolled.IsZero() || sites[0].TokenUntil.IsZero() {
			t.Errorf("got %v; sites %+v, %v", err, sites, listed)
		}
	}, func(c *link.CentralConfig) {
		blind.Store, c.Store, c.ClientCerts = c.Store, blind, link.SiteCert
	})
}

// tokenless is a store that cannot say whose a token is.
type tokenless struct{ sites.Store }

func (*tokenless) TokenSite(context.Context, [32]byte) (string, error) {
	return "", holdfast.ErrUnavailable
}

// A file of TLS that cannot be used is a fault of the settings that names it: no site
// starts without the certificate that it is to show, or trusts whom it should not.
func TestTLSFilesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	good, dir := certtest.New(t, time.Hour), t.TempDir()
	damaged := filepath.Join(dir, "damaged.pem")
	if err := os.WriteFile(damaged, []byte("-----BEGIN CERTIFICATE-----"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]link.Files{
		"no key":        {Cert: good.Cert},
		"no cert":       {Key: good.Key},
		"damaged cert":  {Cert: damaged, Key: good.Key},
		"absent":        {Cert: filepath.Join(dir, "absent.pem"), Key: good.Key},
		"another's key": {Cert: good.Cert, Key: certtest.New(t, time.Hour).Key},
		"damaged CA":    {CA: damaged},
	} {
		conf := link.SiteConfig{URL: "https://127.0.0.1", TLS: f, File: filepath.Join(dir, "credential"), Outbox: quiet{}}
		if _, err := link.NewSite(conf); err == nil || !strings.Contains(err.Error(), "new site: read ") {
			t.Errorf("%s: a site got %v", name, err)
		}
		if _, err := link.Enroll(t.Context(), link.EnrollConfig{URL: conf.URL, Token: bearer.New("hfe_"), File: conf.File, TLS: conf.TLS}); err == nil || !strings.Contains(err.Error(), "enroll: read ") {
			t.Errorf("%s: an enrolment got %v", name, err)
		}
	}
}

// While the files of TLS are what they were, a site keeps its connection.
func TestASiteKeepsItsConnection(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		var dials atomic.Int32
		w.via(func(ctx context.Context, network, address string) (net.Conn, error) {
			dials.Add(1)
			return w.direct(ctx, network, address)
		})
		p := w.site("plant-7")
		defer p.Close()
		enrolled := dials.Load()
		for n := range 60 {
			if _, err := p.Deliver(w.t.Context(), message(n)); err != nil {
				w.t.Error(err)
			}
			time.Sleep(2 * time.Second)
		}
		if n := dials.Load() - enrolled; n != 1 {
			w.t.Errorf("%d connections for a message every two seconds, want one", n)
		}
	})
}
