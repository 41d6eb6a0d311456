package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/admintest"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/httpapi"
	"github.com/holdfast-mq/holdfast/nodestore"
)

// fixture is a server over a stand-in store, without a socket.
type fixture struct {
	*httpapi.Server
	store    *admintest.Memory
	sites    *admintest.Sites
	channels *admintest.Channels
	handler  http.Handler
}

// serve makes a fixture; edit changes the server before it is built.
func serve(tb testing.TB, edit ...func(*httpapi.Server)) *fixture {
	tb.Helper()
	store, sites, channels := &admintest.Memory{}, &admintest.Sites{}, &admintest.Channels{}
	f := &fixture{store: store, sites: sites, channels: channels, Server: &httpapi.Server{Service: &admin.Service{
		Outbox: store, Enqueuer: store, Inbox: store, Tokens: store, Central: sites, Notify: store, Directory: store, Channels: channels, Vault: vault{}, Name: "plant-7",
		Records: &nodestore.Audit{}, AuditLag: func(context.Context) (time.Duration, error) { return 0, nil }, AuditFailures: func() int64 { return 0 },
		Version: "1.2.3",
		Destinations: func() []admin.Destination {
			return []admin.Destination{
				{Name: "inventory", TTL: 24 * time.Hour},
				{Name: "billing", Retry: holdfast.RetryPolicy{First: time.Minute, Factor: 1, Attempts: 4, Jitter: -1}},
			}
		},
	}}}
	for _, e := range edit {
		e(f.Server)
	}
	handler, err := f.Handler()
	if err != nil {
		tb.Fatal(err)
	}
	f.handler = handler
	return f
}

// call is a request; zero fields are left out.
type call struct {
	method, path, body string
	header             map[string]string
	host               string
}

// do sends the request and returns the answer.
func (f *fixture) do(tb testing.TB, c call) *httptest.ResponseRecorder {
	tb.Helper()
	r := httptest.NewRequestWithContext(tb.Context(), c.method, c.path, strings.NewReader(c.body))
	r.Host = "127.0.0.1:8420"
	if c.host != "" {
		r.Host = c.host
	}
	if c.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for name, value := range c.header {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, r)
	return w
}

// ok sends a request that must succeed and decodes the answer.
func ok[T any](tb testing.TB, f *fixture, c call) T {
	tb.Helper()
	w := f.do(tb, c)
	var out T
	if w.Code < 200 || w.Code > 299 {
		tb.Fatalf("%s %s: got %d %s", c.method, c.path, w.Code, w.Body)
	}
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		tb.Errorf("%s %s: got content type %q, want application/json", c.method, c.path, got)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		tb.Fatalf("%s %s: %v in %s", c.method, c.path, err, w.Body)
	}
	return out
}

// send accepts a message and returns its id.
func (f *fixture) send(tb testing.TB, body string) holdfast.ID {
	tb.Helper()
	return holdfast.ID(ok[api.Accepted](tb, f, call{method: "POST", path: "/v1/messages", body: body}).ID)
}

// put brings a message into a state.
func (f *fixture) put(tb testing.TB, id holdfast.ID, edit func(r *holdfast.Record)) {
	tb.Helper()
	if err := f.store.Change(id, edit); err != nil {
		tb.Fatal(err)
	}
}

func park(r *holdfast.Record) {
	r.State, r.Reason, r.Settled = holdfast.Parked, holdfast.ReasonExhausted, time.Now()
}

// problem decodes a refusal and checks what every refusal must have.
func problem(tb testing.TB, w *httptest.ResponseRecorder) api.Problem {
	tb.Helper()
	var p api.Problem
	if got := w.Header().Get("Content-Type"); got != "application/problem+json" {
		tb.Errorf("got content type %q and body %s, want application/problem+json", got, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		tb.Fatalf("problem: %v in %s", err, w.Body)
	}
	if p.Status != w.Code {
		tb.Errorf("got status %d in a problem that came with %d", p.Status, w.Code)
	}
	if !strings.HasPrefix(p.Type, "urn:holdfast:problem:") || p.Title == "" || p.Detail == "" {
		tb.Errorf("got problem %+v, want type, title and detail", p)
	}
	return p
}
