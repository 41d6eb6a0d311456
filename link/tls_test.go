package link_test

import (
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/certtest"
	"github.com/holdfast-mq/holdfast/link"
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
		first, client := certtest.New(t, 3*time.Hour), certtest.New(t, 3*time.Hour)
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
		other := certtest.New(t, 90*24*time.Hour)
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
	}, func(c *link.CentralConfig) { c.ClientCerts = true })
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
