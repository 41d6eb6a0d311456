package webhook_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log" //nolint:depguard // http.Server wants one
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/webhook"
	"github.com/holdfast-mq/holdfast/internal/certtest"
)

func TestARequestIsAuthorized(t *testing.T) {
	t.Parallel()
	r := receive(t, answer(204, ""))
	for name, c := range map[string]struct {
		auth         webhook.Auth
		header, want string
	}{
		"none":     {webhook.Auth{}, "Authorization", ""},
		"bearer":   {webhook.Auth{Bearer: "t"}, "Authorization", "Bearer t"},
		"basic":    {webhook.Auth{Basic: &webhook.Basic{User: "u", Password: "p:q"}}, "Authorization", "Basic dTpwOnE="},
		"key":      {webhook.Auth{Key: &webhook.Key{Header: "X-Api-Key", Value: "k"}}, "X-Api-Key", "k"},
		"verbatim": {webhook.Auth{Key: &webhook.Key{Header: "Authorization", Value: "Token 7"}}, "Authorization", "Token 7"},
	} {
		if f := failure(t, delivererTo(t, webhook.Target{URL: r.URL, Auth: c.auth})); f != nil {
			t.Fatalf("%s: %v", name, f)
		}
		all := r.got()
		if got := all[len(all)-1].header.Get(c.header); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// ZGW: each delivery has a token of its own, so that none is too old.
func TestATokenIsMintedForEachDelivery(t *testing.T) {
	t.Parallel()
	r := receive(t, answer(204, ""))
	d := delivererTo(t, webhook.Target{URL: r.URL, Auth: webhook.Auth{ZGW: &webhook.ZGW{Client: "ours", Secret: "hunter2-hunter2"}}})
	if f := failure(t, d); f != nil {
		t.Fatal(f)
	}
	token, is := strings.CutPrefix(r.got()[0].header.Get("Authorization"), "Bearer ")
	parts := strings.Split(token, ".")
	if !is || len(parts) != 3 {
		t.Fatalf("got %q", token)
	}
	mac := hmac.New(sha256.New, []byte("hunter2-hunter2"))
	mac.Write([]byte(parts[0] + "." + parts[1]))
	if parts[2] != base64.RawURLEncoding.EncodeToString(mac.Sum(nil)) {
		t.Error("the secret does not verify it")
	}
	var head, claims map[string]any
	for i, into := range []*map[string]any{&head, &claims} {
		raw, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err == nil {
			err = json.Unmarshal(raw, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	issued := time.Unix(int64(claims["iat"].(float64)), 0) //nolint:forcetypeassert // a number of JSON
	if head["alg"] != "HS256" || claims["client_id"] != "ours" || claims["iss"] != "ours" || claims["exp"] != claims["iat"].(float64)+43200 || time.Since(issued).Abs() > time.Minute {
		t.Errorf("got %v, %v", head, claims)
	}
}

// issuer hands out tokens t1, t2, ….
type issuer struct {
	*httptest.Server
	issued atomic.Int64
	status atomic.Int64
}

func issue(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{}
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status := i.status.Load(); status != 0 {
			w.WriteHeader(int(status))
			_, _ = io.WriteString(w, `{"error":"invalid_client","error_description":"hunter2"}`)
			return
		}
		if user, password, _ := r.BasicAuth(); user != "id" || password != "hunter2" || r.FormValue("scope") != "a b" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token":"token-%d-of-many-bytes","expires_in":3600}`, i.issued.Add(1))
	}))
	t.Cleanup(i.Close)
	return i
}

// Subscriptions with the same credentials share a token; one that was refused is not used again; and
// an attempt is one request all the same.
func TestTokensOfAnAuthorizationServer(t *testing.T) {
	t.Parallel()
	from := issue(t)
	accepted := atomic.Value{}
	accepted.Store("Bearer token-1-of-many-bytes")
	r := receive(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != accepted.Load() {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, "who is "+got)
		}
	})
	s := sender(t, local())
	to := func(path string) *webhook.Target {
		return &webhook.Target{URL: r.URL + path, Auth: webhook.Auth{OAuth2: &webhook.OAuth2{URL: from.URL, Client: "id", ClientSecret: "hunter2", Scopes: []string{"a", "b"}}}}
	}
	expect := func(what, path, code string, issued int64, requests int) {
		t.Helper()
		e := s.Try(t.Context(), to(path), &holdfast.Message{ID: "m"})
		got := ""
		if e.Failure != nil {
			got = e.Failure.Code
			if e.Failure.Outcome != holdfast.Transient || strings.Contains(e.Failure.Error()+e.Text+fmt.Sprint(e.Header), "of-many-bytes") || strings.Contains(e.Failure.Error(), "hunter2") {
				t.Errorf("%s: got %+v with %q and %v", what, e.Failure, e.Text, e.Header)
			}
		}
		if got != code || from.issued.Load() != issued || len(r.got()) != requests {
			t.Errorf("%s: got %q with %d tokens and %d requests, want %q, %d, %d", what, got, from.issued.Load(), len(r.got()), code, issued, requests)
		}
	}
	expect("the first", "/a", "", 1, 1)
	expect("another subscription", "/b", "", 1, 2)
	accepted.Store("Bearer token-2-of-many-bytes")
	expect("withdrawn", "/a", "http_401", 1, 3)
	expect("the next attempt", "/a", "", 2, 4)
	accepted.Store("none")
	expect("refused", "/a", "http_401", 2, 5)
	from.status.Store(401)
	expect("the client is refused too", "/a", "token_refused", 2, 5)
	from.status.Store(503)
	expect("the server is in trouble", "/b", "token_unavailable", 2, 5)
}

// The token endpoint is behind the guard too.
func TestTokensComeFromAllowedAddresses(t *testing.T) {
	t.Parallel()
	from := issue(t)
	target := webhook.Target{URL: "http://192.0.2.1", Auth: webhook.Auth{OAuth2: &webhook.OAuth2{URL: from.URL, Client: "id", ClientSecret: "hunter2"}}}
	e := sender(t, webhook.Settings{}).Try(t.Context(), &target, &holdfast.Message{ID: "m"})
	if e.Failure == nil || e.Failure.Code != "forbidden_address" || !strings.Contains(e.Failure.Error(), "token") || from.issued.Load() > 0 {
		t.Errorf("got %+v", e.Failure)
	}
}

func TestCertificates(t *testing.T) {
	t.Parallel()
	ours := certtest.New(t, time.Hour)
	key, err := os.ReadFile(ours.Key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ours.PEM)
	srv := httptest.NewUnstartedServer(answer(200, "ok"))
	srv.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, MinVersion: tls.VersionTLS12}
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	t.Cleanup(srv.Close)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}))
	s := sender(t, local())
	whole := webhook.TLS{CA: ca, Cert: string(ours.PEM), Key: string(key)}
	for _, c := range []struct {
		name string
		tls  webhook.TLS
		code string
	}{
		{"all that is needed", whole, ""},
		{"no certificate beside one that has it", webhook.TLS{CA: ca}, "tls_client_refused"},
		{"unknown authority", webhook.TLS{Cert: whole.Cert, Key: whole.Key}, "tls_certificate"},
		{"a key alone", webhook.TLS{Key: whole.Key}, "bad_tls"},
		{"no CA", webhook.TLS{CA: "x"}, "bad_tls"},
		{"again", whole, ""},
	} {
		e := s.Try(t.Context(), &webhook.Target{URL: srv.URL, TLS: c.tls}, &holdfast.Message{ID: "m"})
		if got := e.Failure; c.code == "" && got != nil || c.code != "" && (got == nil || got.Code != c.code) {
			t.Errorf("%s: got %v, want %q", c.name, got, c.code)
		}
		if e.Failure != nil && (e.Failure.Outcome == holdfast.Permanent) != (c.code == "bad_tls") {
			t.Errorf("%s: got the outcome %s", c.name, e.Failure.Outcome)
		}
	}
}

// 42: a proxy takes all but what is exempt, knows its own credentials, and is itself not guarded.
func TestAProxy(t *testing.T) {
	t.Parallel()
	var seen atomic.Value
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Store(r.RequestURI + " " + r.Header.Get("Proxy-Authorization"))
		if r.Method == http.MethodConnect {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = io.WriteString(w, "you are hunter2")
	}))
	t.Cleanup(proxy.Close)
	s := sender(t, webhook.Settings{Proxy: strings.Replace(proxy.URL, "://", "://u:hunter2@", 1), NoProxy: "192.0.2.9", Addresses: []string{"192.0.2.0/24"}})
	if e := s.Try(t.Context(), &webhook.Target{URL: "http://192.0.2.8/a"}, &holdfast.Message{ID: "m"}); e.Failure != nil || seen.Load() != "http://192.0.2.8/a Basic dTpodW50ZXIy" || e.Text != "you are [secret]" {
		t.Errorf("got %v with %q; the proxy has seen %v", e.Failure, e.Text, seen.Load())
	}
	e := s.Try(t.Context(), &webhook.Target{URL: "https://192.0.2.8/a"}, &holdfast.Message{ID: "m"})
	if f := e.Failure; f == nil || f.Outcome != holdfast.Transient || f.MaybeDelivered || strings.Contains(f.Error(), "hunter2") || seen.Load() != "192.0.2.8:443 Basic dTpodW50ZXIy" {
		t.Errorf("a proxy that refuses: got %+v; it has seen %v", f, seen.Load())
	}
	seen.Store("")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if e := s.Try(ctx, &webhook.Target{URL: "http://192.0.2.9/"}, &holdfast.Message{ID: "m"}); e.Failure == nil || seen.Load() != "" {
		t.Errorf("what is exempt: got %v; the proxy has seen %v", e.Failure, seen.Load())
	}
	if e := s.Try(t.Context(), &webhook.Target{URL: "http://10.0.0.1/"}, &holdfast.Message{ID: "m"}); e.Failure == nil || e.Failure.Code != "forbidden_address" || seen.Load() != "" {
		t.Errorf("a forbidden address: got %+v; the proxy has seen %v", e.Failure, seen.Load())
	}
	if _, err := webhook.New(webhook.Settings{Addresses: []string{"here"}}); err == nil {
		t.Error("a network that is none was taken")
	}
	for _, bad := range []string{"nowhere", "ftp://proxy:21", "http://"} {
		if _, err := webhook.New(webhook.Settings{Proxy: bad}); err == nil {
			t.Errorf("the proxy %q was taken", bad)
		}
	}
}
