package email_test

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/internal/certtest"
)

func keyPair(t *testing.T, f certtest.Files) *tls.Config {
	t.Helper()
	c, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{c}, MinVersion: tls.VersionTLS12}
}

// E22, E25: with a private authority both ways of TLS work; credentials are
// sent after the handshake and the second EHLO only, and nothing of a mail is readable
// on the wire.
func TestMailGoesOverTLS(t *testing.T) {
	t.Parallel()
	good := certtest.New(t, time.Hour)
	for _, mode := range []string{"starttls", "implicit", "opportunistic"} {
		s := &server{tls: keyPair(t, good), implicit: mode == "implicit", extensions: []string{"STARTTLS", auth}}
		settings := with(object{"tls": mode, "ca": good.Cert, "auth": object{"mechanism": "plain", "user": "u", "password": named("smtp")}})
		r := send(t, settings, s, people("a@x.test"))
		if got := told(r); got != "accepted" || !strings.HasPrefix(r.TLS, "TLS 1.3 TLS_") || !strings.HasPrefix(r.Server, "127.0.0.1:25") {
			t.Errorf("%s: %s over %q from %q", mode, got, r.TLS, r.Server)
		}
		_, raw, _ := s.seen()
		for _, open := range []string{"AUTH", "MAIL", "a@x.test", encoded("\x00u\x00" + password), password} {
			if strings.Contains(raw, open) {
				t.Errorf("%s: %q can be read on the wire", mode, open)
			}
		}
		want := "EHLO central.test\nSTARTTLS\nEHLO central.test\nAUTH PLAIN " + encoded("\x00u\x00"+password)
		if mode == "implicit" {
			want = "EHLO central.test\nAUTH PLAIN " + encoded("\x00u\x00"+password)
		}
		if got := strings.Join(s.lines, "\n"); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %s", mode, got)
		}
	}
}

// E24, E25, E26: a certificate that is not good holds the channel and says
// why, in each mode; nothing of a mail is sent.
func TestCertificatesThatAreNotGood(t *testing.T) {
	t.Parallel()
	good, expired := certtest.New(t, time.Hour), certtest.New(t, -time.Minute)
	for name, c := range map[string]struct {
		files    certtest.Files
		settings object
		want     string
	}{
		"nobody knows it": {good, object{}, "unknown authority"},
		"expired":         {expired, object{"ca": expired.Cert}, "expired"},
		"other name":      {good, object{"ca": good.Cert, "serverName": "mail.test"}, "mail.test"},
	} {
		for _, mode := range []string{"starttls", "implicit", "opportunistic"} {
			s := &server{tls: keyPair(t, c.files), implicit: mode == "implicit", extensions: []string{"STARTTLS", auth}}
			c.settings["tls"], c.settings["auth"] = mode, object{"mechanism": "plain", "user": "u", "password": named("smtp")}
			r := send(t, with(c.settings), s, people("a@x.test"))
			if got := told(r); got != "waiting; lane_fault tls_certificate" || !strings.Contains(r.Fault.Error(), c.want) {
				t.Errorf("%s, %s: %s: %v", name, mode, got, r.Fault)
			}
			_, raw, _ := s.seen()
			if strings.Contains(raw, "AUTH") || strings.Contains(raw, "MAIL") || s.dials != 1 {
				t.Errorf("%s, %s: went on in clear: %q", name, mode, raw)
			}
		}
	}
}

// E21, E26: no credentials in clear, whatever the server offers.
func TestCredentialsAreNotSentInClear(t *testing.T) {
	t.Parallel()
	login := object{"mechanism": "plain", "user": "u", "password": named("smtp")}
	for mode, want := range map[string]string{
		"starttls": "lane_fault starttls_missing", "opportunistic": "lane_fault auth_needs_tls",
	} {
		s := &server{extensions: []string{auth}}
		if got := told(send(t, with(object{"tls": mode, "auth": login}), s, people("a@x.test"))); got != "waiting; "+want {
			t.Errorf("%s: %s", mode, got)
		}
		_, raw, _ := s.seen()
		if strings.Contains(raw, "AUTH") || strings.Contains(raw, "MAIL") || strings.Contains(raw, encoded(password)) {
			t.Errorf("%s: %q was sent", mode, raw)
		}
	}
	// What is said after STARTTLS and before the handshake comes from somebody else.
	s := &server{extensions: []string{"STARTTLS"}, answer: on(map[string]string{"STARTTLS": "220 go\n250 AUTH PLAIN"})}
	if got := told(send(t, with(object{"tls": "starttls", "auth": login}), s, people("a@x.test"))); got != "waiting; lane_fault not_smtp" {
		t.Error(got)
	}
	// Opportunistic without credentials goes in clear where no TLS is offered.
	s = &server{}
	if r := send(t, with(object{"tls": "opportunistic"}), s, people("a@x.test")); told(r) != "accepted" || r.TLS != "" {
		t.Errorf("%s over %q", told(r), r.TLS)
	}
}

// A server that wants our certificate gets it, and holds the channel without.
func TestOurCertificate(t *testing.T) {
	t.Parallel()
	good := certtest.New(t, time.Hour)
	conf := keyPair(t, good)
	conf.ClientAuth, conf.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
	pem, err := os.ReadFile(good.Cert)
	if err != nil || !conf.ClientCAs.AppendCertsFromPEM(pem) {
		t.Fatal(err)
	}
	for _, c := range []struct {
		settings object
		want     string
	}{
		{object{"cert": good.Cert, "key": good.Key}, "accepted"},
		{object{}, "waiting; lane_fault tls_client_refused"},
	} {
		s := &server{tls: conf, implicit: true}
		port := s.listen(t)
		c.settings["tls"], c.settings["ca"], c.settings["port"] = "implicit", good.Cert, port
		m := openDial(t, with(c.settings), nil)
		if r := m.Send(t.Context(), example(), people("a@x.test"), nil); told(r) != c.want {
			t.Errorf("%s: %v", told(r), r.Fault)
		}
		m.Close()
	}
}
