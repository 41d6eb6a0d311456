package email_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/internal/certtest"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/notify"
)

func encoded(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// Each mechanism says what its standard wants.
func TestMechanisms(t *testing.T) {
	t.Parallel()
	for mechanism, want := range map[string][]string{
		"plain":       {"AUTH PLAIN " + encoded("\x00u\x00"+password)},
		"login":       {"AUTH LOGIN", encoded("u"), encoded(password)},
		"xoauth2":     {"AUTH XOAUTH2 " + encoded("user=u\x01auth=Bearer "+password+"\x01\x01")},
		"oauthbearer": {"AUTH OAUTHBEARER " + encoded("n,a=u,\x01host=127.0.0.1\x01port=25\x01auth=Bearer "+password+"\x01\x01")},
	} {
		racetest.Bubble(t, func(t *testing.T) {
			asked := 0
			s := &server{extensions: []string{auth}, answer: func(_ int, line string) string {
				if line == "AUTH LOGIN" || line == encoded("u") {
					asked++
					return "334 " + encoded([]string{"Username:", "password please"}[asked-1])
				}
				if line == encoded(password) {
					return "235 2.7.0 welcome"
				}
				return ""
			}}
			settings := with(object{"allowInsecureAuth": true, "auth": object{"mechanism": mechanism, "user": "u", "password": named("smtp")}})
			if got := told(send(t, settings, s, people("a@x.test"))); got != "accepted" {
				t.Errorf("%s: %s", mechanism, got)
			}
			if got := strings.Join(s.lines[1:1+len(want)], "\n"); got != strings.Join(want, "\n") {
				t.Errorf("%s: got %s", mechanism, got)
			}
		})
	}
}

// E56, NO-11: a server that repeats all that it was sent shows no secret to
// people; nor does the log.
func TestNoSecretIsShown(t *testing.T) {
	t.Parallel()
	for _, mechanism := range []string{"plain", "login", "xoauth2", "oauthbearer"} {
		racetest.Bubble(t, func(t *testing.T) {
			var all []string
			s := &server{extensions: []string{auth}, answer: func(_ int, line string) string {
				all = append(all, strings.TrimPrefix(line, "AUTH "+strings.ToUpper(mechanism)+" "))
				echo := strings.Join(all, " ") + " " + password + " " + encoded(password) + strings.Repeat(" "+password, 200)
				switch {
				case line == "AUTH LOGIN", line == encoded("u"):
					return "334 " + encoded("?")
				case strings.HasPrefix(line, "AUTH"), line == encoded(password), line == "":
					if mechanism == "xoauth2" && line != "" {
						return "334 " + encoded(`{"status":"401","schemes":"bearer","scope":"`+echo[:min(len(echo), 600)]+`"}`)
					}
					return "535-5.7.8 " + echo[:min(len(echo), 900)] + "\n535 5.7.8 " + echo[:min(len(echo), 900)]
				}
				return ""
			}}
			var log bytes.Buffer
			m := openWith(t, with(object{"allowInsecureAuth": true, "auth": object{"mechanism": mechanism, "user": "u", "password": named("smtp")}}), s,
				secrets(object{"smtp": password}), slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
			r := m.Send(t.Context(), example(), people("a@x.test"), nil)
			if got := told(r); got != "waiting; lane_fault 535 5.7.8" {
				t.Fatalf("%s: %s", mechanism, got)
			}
			said := fmt.Sprintf("%+v %v %s", r, r.Fault, log.String())
			_, first, _ := strings.Cut(strings.Join(s.got("AUTH "), ""), strings.ToUpper(mechanism)+" ")
			for _, secret := range []string{password, encoded(password), strings.TrimRight(encoded(password), "="), first} {
				if secret != "" && strings.Contains(said, secret) {
					t.Errorf("%s: %q is shown: %s", mechanism, secret, said)
				}
			}
			if !strings.Contains(said, "[secret]") {
				t.Errorf("%s: the server's words are gone: %s", mechanism, said)
			}
			if mechanism == "xoauth2" && !strings.Contains(said, `"status":"401"`) {
				t.Errorf("what the server says about the token is gone: %s", said)
			}
			m.Close()
			s.ending.Wait()
		})
	}
}

// E56: of a token that is longer than what is kept of a server's words nothing is
// left either, wherever the words, or the server, cut it.
func TestNoPieceOfALongTokenIsShown(t *testing.T) {
	t.Parallel()
	for _, size := range []int{600, 2000} {
		token := ""
		for len(token) < size {
			token += rand.Text()
		}
		token = token[:size]
		whole := encoded("user=u\x01auth=Bearer " + token + "\x01\x01")
		for name, words := range map[string]string{
			"itself": token, "its beginning": token[:size/2], "its end": "no: " + token[size/2:], "base64": whole, "cut base64": whole[:len(whole)/2], "its base64": encoded(token)[5:],
		} {
			for _, mechanism := range []string{"xoauth2", "oauthbearer", "plain"} {
				for _, at := range []string{"challenge", "reply", "garbage", "RCPT"} {
					s := &server{extensions: []string{auth}, answer: func(_ int, line string) string {
						switch {
						case at == "RCPT" && strings.HasPrefix(line, at):
							return "550 5.1.1 " + words[:min(len(words), 1900)]
						case at == "RCPT":
						case strings.HasPrefix(line, "AUTH") && at == "garbage":
							return "x " + words
						case strings.HasPrefix(line, "AUTH") && at == "challenge":
							return "334 " + encoded(words[:min(len(words), 1400)])
						case strings.HasPrefix(line, "AUTH"), line == "", line == "AQ==":
							half := min(len(words)/2, 900)
							return "535-5.7.8 " + words[:half] + "\n535 5.7.8 " + words[half:min(len(words), half+900)]
						}
						return ""
					}}
					m := openWith(t, with(object{"allowInsecureAuth": true, "auth": object{"mechanism": mechanism, "user": "u", "password": named("smtp")}}), s,
						secrets(object{"smtp": token}), nil)
					r := m.Send(t.Context(), example(), people("a@x.test"), nil)
					m.Close()
					s.ending.Wait()
					said := fmt.Sprintf("%+v %v", r, r.Fault)
					for _, secret := range []string{token, encoded(token), encoded(token[1:]), encoded(token[2:])} {
						for i := 0; i+16 <= len(secret); i++ {
							if strings.Contains(said, secret[i:i+16]) {
								t.Fatalf("%s, %d bytes, %s in %s: %q is shown: %s", mechanism, size, name, at, secret[i:i+16], said)
							}
						}
					}
				}
			}
		}
	}
}

// E16: where the server's words do not help, there is advice.
func TestAdvice(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"550 5.7.30 Basic authentication is not supported for Client Submission": "basic auth disabled, use OAuth2",
		"534 5.7.9 no":  "another mechanism, or an encrypted connection",
		"538 5.7.11 no": "another mechanism, or an encrypted connection",
	} {
		racetest.Bubble(t, func(t *testing.T) {
			r := send(t, with(plain()), &server{extensions: []string{auth}, answer: on(map[string]string{"AUTH": said})}, people("a@x.test"))
			if got := r.Fault.Error(); !strings.Contains(got, want) {
				t.Errorf("got %s", got)
			}
		})
	}
}

// E14: what nobody can deliver holds the channel each time, for as many as
// there are, and charges none; once it is mended, mail goes.
func TestRefusedCredentialsHoldUntilTheyAreRight(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		now := "old"
		s := &server{extensions: []string{auth}, answer: func(_ int, line string) string {
			if strings.HasPrefix(line, "AUTH") && line != "AUTH PLAIN "+encoded("\x00u\x00new") {
				return "535 5.7.8 no"
			}
			return ""
		}}
		m := openWith(t, with(plain()), s, func(notify.SecretUse) ([]byte, error) { return []byte(now), nil }, nil)
		for range 20 {
			if got := told(m.Send(t.Context(), example(), three(), nil)); got != "waiting; waiting; waiting; lane_fault 535 5.7.8" {
				t.Fatal(got)
			}
		}
		if len(s.got("MAIL")) != 0 {
			t.Error("a mail was begun without credentials")
		}
		now = "new" // a secret is read at each use
		if got := told(m.Send(t.Context(), example(), three(), nil)); got != "accepted; accepted; accepted" {
			t.Error(got)
		}
		m.Close()
		s.ending.Wait()
	})
}

// A secret that cannot be used holds the channel, and is not shown.
func TestSecretsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for name, all := range map[string]object{"missing": {}, "empty": {"smtp": " \n"}, "two lines": {"smtp": "a\nb"}} {
		racetest.Bubble(t, func(t *testing.T) {
			s := &server{extensions: []string{auth}}
			m := openWith(t, with(plain()), s, secrets(all), nil)
			r := m.Send(t.Context(), example(), people("a@x.test"), nil)
			if told(r) != "waiting; lane_fault secret" || !strings.Contains(r.Fault.Error(), "secret smtp") {
				t.Errorf("%s: %s: %v", name, told(r), r.Fault)
			}
			s.ending.Wait()
		})
	}
}

// tokenServer is an authorization server.
func tokenServer(t *testing.T, answer func(n int32, w http.ResponseWriter)) (url string, asked *atomic.Int32) {
	t.Helper()
	asked = new(atomic.Int32)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer(asked.Add(1), w)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, asked
}

func oauth(url string) object {
	return with(object{"allowInsecureAuth": true, "auth": object{"mechanism": "xoauth2", "user": "u", "oauth2": object{
		"url": url, "client": "holdfast", "secret": named("smtp"), "scopes": []string{"https://outlook.office365.com/.default"},
	}}})
}

// E17: a token that ends in the middle of a run is replaced by one call, and
// nothing fails; one is fetched for all connections.
func TestATokenThatEndsIsReplaced(t *testing.T) {
	t.Parallel()
	url, asked := tokenServer(t, func(n int32, w http.ResponseWriter) {
		_, _ = fmt.Fprintf(w, `{"access_token":"token-%d","token_type":"Bearer","expires_in":3600}`, n)
	})
	var good atomic.Value
	good.Store("token-1")
	s := &server{extensions: []string{auth}, answer: func(_ int, line string) string {
		switch {
		case strings.HasPrefix(line, "AUTH") && !strings.Contains(line, encoded("user=u\x01auth=Bearer "+good.Load().(string)+"\x01\x01")):
			return "334 " + encoded(`{"status":"400"}`)
		case line == "":
			return "535 5.7.3 the token has ended"
		}
		return ""
	}}
	m := open(t, oauth(url), s)
	many := func() {
		ends := make(chan string, 4)
		for range cap(ends) {
			go func() { ends <- told(m.Send(t.Context(), example(), people("a@x.test"), nil)) }()
		}
		for range cap(ends) {
			if got := <-ends; got != "accepted" {
				t.Error(got)
			}
		}
	}
	many()
	if got := asked.Load(); got != 1 {
		t.Errorf("%d tokens were fetched for the first connections", got)
	}
	m.Close()
	m = open(t, oauth(url), s)
	good.Store("token-2")
	many()
	good.Store("token-3")
	m.Close() // keeps no connection from now on
	many()
	if got := asked.Load(); got != 3 {
		t.Errorf("%d tokens were fetched", got)
	}
	good.Store("none")
	if got := told(m.Send(t.Context(), example(), people("a@x.test"), nil)); got != "waiting; lane_fault 535 5.7.3" {
		t.Error(got)
	}
	if got := asked.Load(); got != 4 {
		t.Errorf("%d tokens were fetched, the last ones for nothing", got)
	}
	s.ending.Wait()
}

// A token is asked for over TLS, with the authority of the settings, from TLS 1.2 on.
func TestATokenIsAskedForOverTLS(t *testing.T) {
	t.Parallel()
	files := certtest.New(t, time.Hour)
	for version, want := range map[uint16]string{tls.VersionTLS13: "accepted", tls.VersionTLS12: "accepted", tls.VersionTLS11: "waiting; lane_fault tls_failed"} {
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"access_token":"token","token_type":"Bearer","expires_in":3600}`)
		}))
		srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
		srv.TLS = keyPair(t, files)
		srv.TLS.MinVersion, srv.TLS.MaxVersion = tls.VersionTLS10, version
		srv.StartTLS()
		settings := oauth(srv.URL)
		settings["ca"] = files.Cert
		if got := told(send(t, settings, &server{extensions: []string{auth}}, people("a@x.test"))); got != want {
			t.Errorf("%s: %s, want %s", tls.VersionName(version), got, want)
		}
		srv.Close()
	}
}

// E20 and the table: what a token endpoint says.
func TestTokenEndpointsAreClassified(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		body   string
		want   string
	}{
		"busy":                {503, "", "unreachable token_unavailable in 30s"},
		"too often":           {429, "", "unreachable token_unavailable in 30s"},
		"invalid_client":      {401, `{"error":"invalid_client"}`, "lane_fault token_refused"},
		"invalid_grant":       {400, `{"error":"invalid_grant","error_description":"` + password + `"}`, "lane_fault token_refused"},
		"unauthorized_client": {400, `{"error":"unauthorized_client"}`, "lane_fault token_refused"},
	} {
		url, _ := tokenServer(t, func(_ int32, w http.ResponseWriter) {
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(c.status)
			_, _ = fmt.Fprint(w, c.body)
		})
		s := &server{extensions: []string{auth}}
		m := open(t, oauth(url), s)
		r := m.Send(t.Context(), example(), people("a@x.test"), nil)
		want := c.want
		if strings.HasPrefix(want, "lane") {
			want += " in 30s"
		}
		if got := told(r); got != "waiting; "+want {
			t.Errorf("%s: %s", name, got)
		}
		if text := r.Fault.Error(); strings.Contains(text, password) || strings.HasPrefix(name, "inv") && !strings.Contains(text, name) {
			t.Errorf("%s: %s", name, text)
		}
		if len(s.got("AUTH")) != 0 {
			t.Errorf("%s: AUTH was sent without a token", name)
		}
		m.Close()
		s.ending.Wait()
	}
	s := &server{extensions: []string{auth}}
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
	defer stop()
	r := open(t, oauth("http://127.0.0.1:1"), s).Send(ctx, example(), people("a@x.test"), nil)
	if got := told(r); got != "waiting; unreachable connection_refused" {
		t.Errorf("nobody there: %s", got)
	}
	s.ending.Wait()
}
