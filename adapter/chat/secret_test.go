package chat_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/adapter/chat"
	"github.com/holdfast-mq/holdfast/internal/certtest"
)

// leaks are the secrets, and the parts of them, that a text shows.
func leaks(text, at string) (found []string) {
	for _, s := range []string{
		urlToken, token, signing, strings.TrimPrefix(signing, "whsec_"), "/hooks/", at + "/hooks",
		"pass/word", base64.StdEncoding.EncodeToString([]byte("bot:pass/word")),
	} {
		if strings.Contains(text, s) {
			found = append(found, s)
		}
	}
	return found
}

// NO-11, H10, E56: whatever goes wrong, and though the other side repeats all
// that it was sent, no report, error or log line has a secret in it.
func TestNoSecretIsShown(t *testing.T) {
	t.Parallel()
	echo := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			all := fmt.Sprintf(`{"id":%q,"said":"http://%s%s %s %v"}`, r.URL.Query().Get("sig")+r.Header.Get("X-Gotify-Key"), r.Host, r.RequestURI, r.URL.Path, r.Header)
			w.Header().Set("Location", "/?"+all)
			w.Header().Set("X-Ms-Workflow-Run-Id", all)
			answer(status, all)(w, r)
		}
	}
	// The secret is where what is read of the answer ends.
	atTheEdge := func(w http.ResponseWriter, r *http.Request) {
		secrets := strings.Repeat(r.URL.Query().Get("sig")+r.Header.Get("X-Gotify-Key")+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")+" ", 1000)
		answer(500, secrets)(w, r)
	}
	inTheURL := func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		answer(403, fmt.Sprint(r.Header, user, password))(w, r)
	}
	hangUp := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	for name, h := range map[string]http.HandlerFunc{
		"200": echo(200), "302": echo(302), "400": echo(400), "401": echo(401), "410": echo(410), "429": echo(429), "500": echo(500),
		"cut": atTheEdge, "in the URL": inTheURL, "hang up": hangUp, "nobody": nil,
	} {
		for _, kind := range chat.Kinds() {
			at := "http://127.0.0.1:1"
			if h != nil {
				at = serve(t, h)
			}
			settings, s := own(kind, at), keep(at)
			s.put("password", "pass/word\n")
			if name == "in the URL" {
				s.put("url", strings.Replace(at, "http://", "http://bot:pass%2Fword@", 1)+"/hooks/x")
			}
			r := open(t, kind, settings, s, nil)
			said := r.said(r.Send(t.Context(), example(), to(""), nil))
			if found := leaks(said, at); found != nil {
				t.Errorf("%s, %s: %q in %s", kind, name, found, said)
			}
			if kind == "ntfy" {
				delete(settings, "token")
				settings["user"], settings["password"] = "bot", named("password")
				r = open(t, kind, settings, s, nil)
				said = r.said(r.Send(t.Context(), example(), to(""), nil))
				if found := leaks(said, at); found != nil {
					t.Errorf("%s with a password, %s: %q in %s", kind, name, found, said)
				}
			}
			has(t, kind+", "+name, said, strings.TrimPrefix(at, "http://"))
		}
	}
}

// Of a secret that is longer than what is kept of an answer nothing is left
// either, wherever the answer cuts it.
func TestNoPieceOfALongSecretIsShown(t *testing.T) {
	t.Parallel()
	for _, size := range []int{600, 2000} {
		secret := ""
		for len(secret) < size {
			secret += rand.Text()
		}
		for name, words := range map[string]string{
			"itself": secret, "its beginning": secret[:400], "its end": secret[size/2:], "base64": base64.StdEncoding.EncodeToString([]byte("bot:" + secret))[6:],
		} {
			for _, kind := range chat.Kinds() {
				for _, status := range []int{200, 400, 500} {
					at := serve(t, answer(status, `{"id":"`+words+`"} `+strings.Repeat(words, 3), "X-Ms-Workflow-Run-Id", words))
					s := keep(at)
					s.put("url", at+"/hooks/"+secret+"?sig="+secret)
					s.put("token", secret)
					r := open(t, kind, own(kind, at), s, nil)
					said := r.said(r.Send(t.Context(), example(), to(""), nil))
					for i := 0; i+16 <= len(secret); i++ {
						if strings.Contains(said, secret[i:i+16]) {
							t.Fatalf("%s, %d, %d bytes, %s: %q is shown: %s", kind, status, size, name, secret[i:i+16], said)
						}
					}
				}
			}
		}
	}
}

// Some services have the secret in the name of the host; errors of name
// servers, and the report, have that name.
func TestASecretInAHostsNameIsNotShown(t *testing.T) {
	t.Parallel()
	const host = "eo3x5q7z9k2m.hooks.example"
	s := keep("https://" + host)
	r := open(t, "webhook", own("webhook", ""), s, func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.DNSError{Err: "server misbehaving", Name: host}
	})
	report := r.Send(t.Context(), example(), to(""), nil)
	said := r.said(report)
	if strings.Contains(said, "eo3x5q7z9k2m") || report.Server != "[secret].hooks.example" {
		t.Errorf("got %s", said)
	}
	has(t, "error", said, "server misbehaving")
}

// A secret that is missing, empty or none of its kind holds the channel, and is
// not shown.
func TestSecretsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ kind, secret, text, want string }{
		"empty":              {"gotify", "token", " \n", "lane_fault, secret"},
		"two lines":          {"gotify", "token", token + "\n" + token, "lane_fault, secret"},
		"no URL":             {"teams", "url", "xoxb-" + urlToken, "lane_fault, bad_url"},
		"not even readable":  {"slack", "url", "https://%zz/" + urlToken, "lane_fault, bad_url"},
		"open on the way":    {"slack", "url", "http://chat.example/hooks/" + urlToken, "lane_fault, bad_url"},
		"too short to sign":  {"webhook", "sign", "tk_hunter2hunter2", "lane_fault, bad_secret"},
		"not base64 to sign": {"webhook", "sign", "whsec_" + urlToken + "!", "lane_fault, bad_secret"},
		"a file of its own":  {"ntfy", "token", "", "lane_fault, secret"},
	} {
		at := serve(t, answer(200, "ok"))
		s := keep(at)
		s.put(c.secret, c.text)
		r := open(t, c.kind, own(c.kind, at), s, nil)
		report := r.Send(t.Context(), example(), to(""), nil)
		if got := verdict(report, 0); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
		said := r.said(report)
		if found := leaks(said, at); found != nil {
			t.Errorf("%s: %q in %s", name, found, said)
		}
		if text := report.Fault.Error(); !strings.Contains(text, "secret "+c.secret) {
			t.Errorf("%s: the error does not name the secret: %s", name, text)
		}
	}
}

// NO-10: a secret that is renewed counts from the next request on. H10: the
// line's end after it does not.
func TestSecretsAreReadAtEachUse(t *testing.T) {
	t.Parallel()
	var got []string
	at := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.RequestURI+r.Header.Get("Authorization")+r.Header.Get("X-Gotify-Key"))
		answer(200, "ok")(w, r)
	})
	for kind, c := range map[string]struct{ secret, text, before, after string }{
		"slack":  {"url", at + "/new?x=%2F\r\n", "/hooks/" + urlToken + "?sig=Sig" + urlToken, "/new?x=%2F"},
		"ntfy":   {"token", "second\n\n", "/Bearer " + token, "/Bearer second"},
		"gotify": {"token", "\tsecond", "/message" + token, "/messagesecond"},
	} {
		got = nil
		s := keep(at)
		r := open(t, kind, own(kind, at), s, nil)
		r.Send(t.Context(), example(), to(""), nil)
		s.put(c.secret, c.text)
		r.Send(t.Context(), example(), to(""), nil)
		if len(got) != 2 || got[0] != c.before || got[1] != c.after {
			t.Errorf("%s: got %q, want %q and %q", kind, got, c.before, c.after)
		}
	}
}

// Own authority and certificate; a certificate that is wrong holds the channel,
// and where another target may work, defers.
func TestCertificates(t *testing.T) {
	t.Parallel()
	ours := certtest.New(t, time.Hour)
	var shown int
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown = len(r.TLS.PeerCertificates)
		answer(200, "ok")(w, r)
	}))
	srv.TLS = serverTLS(t, ours)
	srv.StartTLS()
	t.Cleanup(srv.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, ours.PEM, 0o600); err != nil {
		t.Fatal(err)
	}
	settings := own("slack", srv.URL)
	r := open(t, "slack", settings, keep(srv.URL), nil)
	report := r.Send(t.Context(), example(), to(""), nil)
	if got := verdict(report, 0); got != "lane_fault, tls_certificate" {
		t.Errorf("got %q of an authority that nobody knows", got)
	}
	if found := leaks(r.said(report), srv.URL); found != nil {
		t.Errorf("%q is shown", found)
	}
	targets := object{"targets": object{"x": object{"url": named("url")}, "y": object{"url": named("url")}}}
	if got := verdict(open(t, "slack", targets, keep(srv.URL), nil).Send(t.Context(), example(), to("x"), nil), 0); got != "deferred, tls_certificate" {
		t.Errorf("got %q of one target of two", got)
	}
	settings["ca"], settings["cert"], settings["key"] = ca, ours.Cert, ours.Key
	report = open(t, "slack", settings, keep(srv.URL), nil).Send(t.Context(), example(), to(""), nil)
	if got := verdict(report, 0); got != "accepted" || shown != 1 || !strings.HasPrefix(report.TLS, "TLS 1.3 ") {
		t.Errorf("got %q with %d certificates over %q", got, shown, report.TLS)
	}
}
