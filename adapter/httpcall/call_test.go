package httpcall_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/httpcall"
	"github.com/holdfast-mq/holdfast/internal/certtest"
)

func made(t *testing.T, c httpcall.Config) *httpcall.Caller {
	t.Helper()
	caller, err := httpcall.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(caller.Close)
	return caller
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func failureOf(t *testing.T, c *httpcall.Caller) *holdfast.Failure {
	t.Helper()
	_, err := c.Deliver(t.Context(), holdfast.Message{ID: "m", Payload: []byte("{}")})
	if err == nil {
		return nil
	}
	return holdfast.AsFailure(err)
}

// SF-02, external-system: the request is what the configuration says.
func TestTheRequestIsAsConfigured(t *testing.T) {
	t.Parallel()
	var got *http.Request
	var body []byte
	at := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
	})
	for method, want := range map[string]string{"": "POST", "PUT": "PUT", "DELETE": "DELETE", "GET": "GET"} {
		c := made(t, httpcall.Config{
			URL: at + "/api/{endpoint}/{id}?of={endpoint}", Method: method,
			Header: http.Header{"X-Plant": {"7"}, "Content-Type": {"text/plain"}},
		})
		if _, err := c.Deliver(t.Context(), holdfast.Message{ID: "a/b", Endpoint: "Order&Approved", Payload: []byte("p")}); err != nil {
			t.Fatal(err)
		}
		if uri := "/api/Order&Approved/a%2Fb?of=Order%26Approved"; got.Method != want || got.RequestURI != uri {
			t.Errorf("got %s %s, want %s %s", got.Method, got.RequestURI, want, uri)
		}
		if got.Header.Get("X-Plant") != "7" || got.Header.Get("Content-Type") != "text/plain" || got.Header.Get("Idempotency-Key") != "a/b" {
			t.Errorf("got headers %v", got.Header)
		}
		if wantBody := map[bool]string{true: "", false: "p"}[want == "GET"]; string(body) != wantBody {
			t.Errorf("%s: got the body %q, want %q", want, body, wantBody)
		}
	}
}

func TestStatusesAreAsConfigured(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status             int
		success, permanent []httpcall.Statuses
		want               holdfast.Outcome
	}{
		"a success of its own":      {409, []httpcall.Statuses{{200, 299}, {409, 409}}, nil, holdfast.Succeeded},
		"success decides":           {409, []httpcall.Statuses{{409, 409}}, []httpcall.Statuses{{400, 499}}, holdfast.Succeeded},
		"no success any more":       {204, []httpcall.Statuses{{200, 200}}, nil, holdfast.Transient},
		"permanent":                 {503, nil, []httpcall.Statuses{{503, 503}}, holdfast.Permanent},
		"not permanent any more":    {404, nil, []httpcall.Statuses{{422, 422}}, holdfast.Transient},
		"401 without authorization": {401, nil, nil, holdfast.Permanent},
	} {
		f := failureOf(t, made(t, httpcall.Config{URL: serve(t, answer(c.status, "")), Success: c.success, Permanent: c.permanent}))
		if f == nil && c.want != holdfast.Succeeded || f != nil && f.Outcome != c.want {
			t.Errorf("%s: got %v, want %s", name, f, c.want)
		}
	}
}

// People see what the target says, and no more of it than they should.
func TestTheBeginningOfARefusalIsShown(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"unknown\r\n order\x00 7":  "the endpoint answered 422: unknown order 7",
		"":                         "the endpoint answered 422",
		"\xff\xfe":                 "the endpoint answered 422",
		"1234567890123456789é":     "the endpoint answered 422: 1234567890123456789…",
		strings.Repeat("x", 1<<16): "the endpoint answered 422: " + strings.Repeat("x", 20) + "…",
	} {
		f := failureOf(t, made(t, httpcall.Config{URL: serve(t, answer(422, body)), Excerpt: 20}))
		if f == nil || f.Error() != want {
			t.Errorf("got %v, want %q", f, want)
		}
	}
}

func TestFixedCredentials(t *testing.T) {
	t.Parallel()
	calls := atomic.Int64{}
	at := serve(t, func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		user, password, _ := r.BasicAuth()
		if user+":"+password != "u:p:q" && r.Header.Get("Authorization") != "Bearer t" && r.Header.Get("X-Api-Key") != "k" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	for name, c := range map[string]struct {
		auth httpcall.Auth
		good bool
	}{
		"basic": {httpcall.Basic("u", "p:q"), true}, "bearer": {httpcall.Bearer("t"), true}, "key": {httpcall.Key("X-Api-Key", "k"), true},
		"wrong": {httpcall.Bearer("hunter2"), false},
	} {
		calls.Store(0)
		switch f := failureOf(t, made(t, httpcall.Config{URL: at, Auth: c.auth})); {
		case c.good && f != nil:
			t.Errorf("%s: %v", name, f)
		case !c.good && (f == nil || f.Outcome != holdfast.LaneFault || f.Code != "credentials_refused" || strings.Contains(f.Error(), "hunter2")):
			t.Errorf("%s: got %v, want a lane fault without the token", name, f)
		}
		if n := calls.Load(); n != 1 {
			t.Errorf("%s: %d calls", name, n)
		}
	}
	if f := failureOf(t, made(t, httpcall.Config{URL: at, Auth: httpcall.Bearer("x"), Permanent: []httpcall.Statuses{{401, 401}}})); f == nil || f.Outcome != holdfast.Permanent {
		t.Errorf("got %v, want permanent, as the configuration says", f)
	}
}

// issuer hands out tokens t1, t2, ….
type issuer struct {
	issued  atomic.Int64
	expires atomic.Int64
	status  atomic.Int64 // instead of a token
	wait    atomic.Bool  // it asks for seven seconds
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if s := i.status.Load(); s != 0 {
		if i.wait.Load() {
			w.Header().Set("Retry-After", "7")
		}
		w.WriteHeader(int(s))
		_, _ = io.WriteString(w, `{"error":"invalid_client","error_description":"hunter2"}`)
		return
	}
	user, password, _ := r.BasicAuth()
	if user != "id" || password != "hunter2" || r.FormValue("grant_type") != "client_credentials" || r.FormValue("scope") != "a b" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	_, _ = fmt.Fprintf(w, `{"access_token":"t%d","token_type":"Bearer","expires_in":%d}`, i.issued.Add(1), i.expires.Load())
}

func TestClientCredentials(t *testing.T) {
	t.Parallel()
	tokens := &issuer{}
	tokens.expires.Store(3600)
	srv := httptest.NewServer(tokens)
	defer srv.Close()
	accepted := atomic.Value{}
	accepted.Store("t1")
	calls := atomic.Int64{}
	at := serve(t, func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		if r.Header.Get("Authorization") != "Bearer "+accepted.Load().(string) {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	client := func() *httpcall.Caller {
		auth, err := httpcall.ClientCredentials(httpcall.OAuth2{URL: srv.URL, ClientID: "id", ClientSecret: "hunter2", Scopes: []string{"a", "b"}})
		if err != nil {
			t.Fatal(err)
		}
		return made(t, httpcall.Config{URL: at, Auth: auth})
	}
	c := client()
	expect := func(what string, issued, called int64, outcome holdfast.Outcome, code string) {
		t.Helper()
		calls.Store(0)
		f := failureOf(t, c)
		got, gotCode := holdfast.Succeeded, ""
		if f != nil {
			got, gotCode = f.Outcome, f.Code
			if strings.Contains(f.Error(), "hunter2") || strings.Contains(f.Error(), srv.URL) || f.MaybeDelivered && calls.Load() == 0 {
				t.Errorf("%s: the failure is %+v", what, f)
			}
		}
		if got != outcome || gotCode != code || tokens.issued.Load() != issued || calls.Load() != called {
			t.Errorf("%s: %s %q (%v) with %d tokens and %d calls, want %s %q with %d and %d", what, got, gotCode, f, tokens.issued.Load(), calls.Load(), outcome, code, issued, called)
		}
	}
	expect("the first call", 1, 1, holdfast.Succeeded, "")
	expect("the token is kept", 1, 1, holdfast.Succeeded, "")
	accepted.Store("t2")
	expect("withdrawn, fetched anew in the same attempt", 2, 2, holdfast.Succeeded, "")
	accepted.Store("none")
	expect("a fresh one is refused as well", 3, 2, holdfast.LaneFault, "credentials_refused")
	accepted.Store("t4")
	tokens.status.Store(401)
	expect("the client is refused", 3, 1, holdfast.LaneFault, "token_refused")
	tokens.status.Store(503)
	expect("the issuer is in trouble", 3, 0, holdfast.Unreachable, "token_unavailable")
	tokens.wait.Store(true) // F1-67: it is kept to
	if f := failureOf(t, client()); f == nil || f.RetryAfter != 7*time.Second {
		t.Errorf("it asks for seven seconds: got %+v", f)
	}
	tokens.status.Store(0)
	tokens.expires.Store(30) // less than the margin: each call fetches one
	expect("again", 4, 1, holdfast.Succeeded, "")
	accepted.Store("t5")
	expect("near its end", 5, 1, holdfast.Succeeded, "")
	srv.Close()
	calls.Store(0)
	// The connection that is kept may break only now, or be gone already.
	if f := failureOf(t, c); f == nil || f.Outcome != holdfast.Unreachable || f.MaybeDelivered || calls.Load() != 0 || f.Code != "connection_refused" && f.Code != "connection_lost" {
		t.Errorf("the issuer is away: got %+v and %d calls", f, calls.Load())
	}
}

// Many calls at once share one token, and one that is withdrawn is fetched once.
func TestOneTokenIsFetchedAtATime(t *testing.T) {
	t.Parallel()
	tokens := &issuer{}
	tokens.expires.Store(3600)
	from := httptest.NewServer(tokens)
	defer from.Close()
	at := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer t1" {
			time.Sleep(20 * time.Millisecond) // so that several hold it
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	auth, err := httpcall.ClientCredentials(httpcall.OAuth2{URL: from.URL, ClientID: "id", ClientSecret: "hunter2", Scopes: []string{"a", "b"}})
	if err != nil {
		t.Fatal(err)
	}
	c := made(t, httpcall.Config{URL: at, Auth: auth})
	results := make(chan error, 30)
	for range cap(results) {
		go func() {
			_, err := c.Deliver(context.Background(), holdfast.Message{ID: "m"})
			results <- err
		}()
	}
	for range cap(results) {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if n := tokens.issued.Load(); n != 2 {
		t.Errorf("%d tokens were fetched, want 2", n)
	}
}

func TestCertificates(t *testing.T) {
	t.Parallel()
	ours := certtest.New(t, time.Hour)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ours.PEM)
	srv := httptest.NewUnstartedServer(answer(200, "ok"))
	srv.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, MinVersion: tls.VersionTLS12}
	srv.StartTLS()
	defer srv.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		tls  httpcall.TLS
		code string
	}{
		"all that is needed": {httpcall.TLS{CA: ca, Cert: ours.Cert, Key: ours.Key}, ""},
		"unknown authority":  {httpcall.TLS{Cert: ours.Cert, Key: ours.Key}, "tls_certificate"},
		"no certificate":     {httpcall.TLS{CA: ca}, "tls_client_refused"},
	} {
		f := failureOf(t, made(t, httpcall.Config{URL: srv.URL, TLS: c.tls}))
		if c.code == "" && f != nil || c.code != "" && (f == nil || f.Code != c.code || f.Outcome != holdfast.LaneFault) {
			t.Errorf("%s: got %v, want %q", name, f, c.code)
		}
	}
	for name, bad := range map[string]httpcall.TLS{
		"no such CA": {CA: ca + "x"}, "a CA that is none": {CA: ours.Key}, "a certificate alone": {Cert: ours.Cert}, "no such key": {Cert: ours.Cert, Key: ca + "x"},
	} {
		if _, err := httpcall.New(httpcall.Config{URL: srv.URL, TLS: bad}); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func TestPlaceholdersHaveTheirPlace(t *testing.T) {
	t.Parallel()
	if _, err := httpcall.New(httpcall.Config{URL: "http://{endpoint}.example/"}); err == nil {
		t.Error("a placeholder stands for the host")
	}
}

// An id or endpoint that somebody else chose must not lead to another place of
// the target.
func TestNamesStayInTheirPlace(t *testing.T) {
	t.Parallel()
	calls := atomic.Int64{}
	at := serve(t, func(http.ResponseWriter, *http.Request) { calls.Add(1) })
	c := made(t, httpcall.Config{URL: at + "/jobs/{id}"})
	for _, id := range []holdfast.ID{"..", ".", "a/../../admin", `a\..\admin`, "../x"} {
		_, err := c.Deliver(t.Context(), holdfast.Message{ID: id})
		if f := holdfast.AsFailure(err); err == nil || f.Outcome != holdfast.Permanent || f.Code != "bad_name" {
			t.Errorf("%s: got %v, want a permanent failure", id, err)
		}
	}
	if n := calls.Load(); n != 0 {
		t.Errorf("the target was called %d times", n)
	}
	for _, id := range []holdfast.ID{"a..b", "...", "v1.2/x", "a?b#c"} {
		if _, err := c.Deliver(t.Context(), holdfast.Message{ID: id}); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if _, err := made(t, httpcall.Config{URL: at}).Deliver(t.Context(), holdfast.Message{ID: ".."}); err != nil {
		t.Errorf("where the name does not stand in the URL: %v", err)
	}
}
