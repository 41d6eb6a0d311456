package httpapi_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
	"github.com/holdfast-mq/holdfast/admin/httpapi"
)

// asks serves f on a free port and returns a client of it.
func asks(tb testing.TB, f *fixture, token string) *client.Client {
	tb.Helper()
	server := httptest.NewServer(f.handler)
	tb.Cleanup(server.Close)
	c, err := client.New(server.URL, token)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func TestTheClientAsksEveryRoute(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	f := serve(t)
	c := asks(t, f, "")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	payload := `{ "a":1.0, "b":"<é>" }`
	retries := 3
	sent, err := c.Messages().Send(ctx, api.NewMessage{ID: "a/b", Destination: "inventory", Endpoint: "x", MaxRetries: &retries, Payload: []byte(payload)})
	must(err)
	if diff := cmp.Diff(api.Accepted{ID: "a/b", State: "pending", Accepted: true, Buffered: true, Durability: "local"}, sent); diff != "" {
		t.Errorf("send (-want +got):\n%s", diff)
	}
	shown, err := c.Messages().Get(ctx, "a/b")
	must(err)
	if string(shown.Payload) != payload {
		t.Errorf("got payload %s, want %s", shown.Payload, payload)
	}
	f.put(t, "a/b", park)
	page, err := c.Messages().List(ctx, client.MessageQuery{States: []string{"parked", "expired"}, Destination: "inventory", Limit: 10})
	must(err)
	failed, err := c.Messages().Failed(ctx, "", 0)
	must(err)
	if diff := cmp.Diff(page, failed); diff != "" || len(page.Messages) != 1 {
		t.Errorf("got %d messages; failed (-messages +failed):\n%s", len(page.Messages), diff)
	}
	held, err := c.Messages().List(ctx, client.MessageQuery{Held: true})
	must(err)
	if len(held.Messages) != 0 {
		t.Errorf("%d messages are held", len(held.Messages))
	}
	m, err := c.Messages().Retry(ctx, "a/b", api.RetryRequest{TTL: "1h"})
	must(err)
	if m.State != "pending" || m.Cycle != 2 {
		t.Errorf("retry: got %+v", m)
	}
	f.put(t, "a/b", park)
	m, err = c.Messages().Discard(ctx, "a/b")
	must(err)
	if m.State != "discarded" || m.Reason != "operator" {
		t.Errorf("discard: got %+v", m)
	}

	_, err = f.store.Keep(ctx, 0, holdfast.Message{ID: "k", Source: "engine", Endpoint: "x", Payload: []byte(payload)})
	must(err)
	inbox, err := c.Inbox().List(ctx, client.InboxQuery{Endpoint: "x", Limit: 5})
	must(err)
	if len(inbox.Messages) != 1 || string(inbox.Messages[0].Payload) != payload {
		t.Errorf("inbox: got %+v", inbox)
	}
	done, err := c.Inbox().Done(ctx, "k", api.DoneRequest{Response: []byte(`[1]`)})
	must(err)
	if done != (api.Done{ID: "k", Source: "engine", Done: true}) {
		t.Errorf("done: got %+v", done)
	}

	destinations, err := c.Destinations().List(ctx)
	must(err)
	if len(destinations) != 2 {
		t.Errorf("destinations: got %+v", destinations)
	}
	created, err := c.Tokens().Create(ctx, api.NewToken{Name: "erp", Role: api.RoleRead})
	must(err)
	list, err := c.Tokens().List(ctx)
	must(err)
	if !api.WellFormed(created.Secret) || len(list) != 1 || list[0].Name != "erp" {
		t.Errorf("tokens: got %+v and %+v", created, list)
	}
	must(c.Tokens().Delete(ctx, "erp", false))
	if s, err := c.OutboxStats(ctx); err != nil || s != (api.OutboxStats{}) {
		t.Errorf("outbox: got %+v, %v", s, err)
	}
	if s, err := c.InboxStats(ctx); err != nil || s.Size != 1 {
		t.Errorf("inbox: got %+v, %v", s, err)
	}
	if h, err := c.Health(ctx); err != nil || h.Status != api.OK || h.Node != "plant-7" {
		t.Errorf("health: got %+v, %v", h, err)
	}
}

func TestARefusalIsAProblem(t *testing.T) {
	t.Parallel()
	f := serve(t, locked)
	secret := tokens(t, f)[api.RoleRead]
	_, err := asks(t, f, secret).Messages().Send(t.Context(), api.NewMessage{Destination: "inventory", Endpoint: "x"})
	if p, ok := errors.AsType[*api.Problem](err); !ok || p.Status != 403 || !strings.Contains(p.Detail, "the right send") {
		t.Errorf("got %v, want a 403 problem", err)
	}
	_, err = asks(t, f, "").Messages().List(t.Context(), client.MessageQuery{})
	if p, ok := errors.AsType[*api.Problem](err); !ok || p.Status != 401 {
		t.Errorf("got %v, want a 401 problem", err)
	}
	if _, err := asks(t, f, secret).Messages().List(t.Context(), client.MessageQuery{}); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestAFailingNodeIsNoErrorOfHealth(t *testing.T) {
	t.Parallel()
	f := serve(t, func(s *httpapi.Server) { s.Health = func() api.Health { return api.Health{Status: api.Failing} } })
	if h, err := asks(t, f, "").Health(t.Context()); err != nil || h.Status != api.Failing {
		t.Errorf("got %+v, %v", h, err)
	}
}

func TestAnAnswerOfSomethingElseIsToldApart(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	c, err := client.New(server.URL+"/base/", "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Messages().Get(t.Context(), "m")
	p, ok := errors.AsType[*api.Problem](err)
	if want := `GET /base/v1/messages/m: answered 404 Not Found, and not by a Holdfast node: "404 page not found"`; !ok || p.Status != 404 || p.Detail != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestNobodyThereIsUnreachable(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "none.sock")
	c, err := client.New("unix://"+socket, "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Destinations().List(t.Context())
	if !errors.Is(err, client.ErrUnreachable) || !strings.Contains(err.Error(), socket) {
		t.Errorf("got %v, want ErrUnreachable that names the socket", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Destinations().List(ctx); !errors.Is(err, context.Canceled) || errors.Is(err, client.ErrUnreachable) {
		t.Errorf("got %v, want only that the context has ended", err)
	}
}

func TestASocketIsAnAddress(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "node.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: serve(t).handler}}
	server.Start()
	t.Cleanup(server.Close)
	c, err := client.New("unix://"+socket, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Destinations().List(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAddressesAreChecked(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "localhost:8420", "http://", "ftp://a", "unix://relative/path", "unix://", "unix:///a?b", "unix:///a#b", "http://a?b", "http://a:b:c", "http://u:secret@a"} {
		_, err := client.New(address, "")
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: got %v, want an error without secrets", address, err)
		}
	}
	// F1-13: a token goes nowhere in clear.
	token := api.NewSecret()
	for _, address := range []string{"http://plant-7:8420", "http://10.0.0.7", "http://localhost.example"} {
		if _, err := client.New(address, token); err == nil || !strings.Contains(err.Error(), "https://") || strings.Contains(err.Error(), token) {
			t.Errorf("%q with a token: got %v, want it refused", address, err)
		}
	}
	for _, address := range []string{"http://127.0.0.1:8420", "http://[::1]:1", "http://LOCALHOST", "https://plant-7:8420", "unix:///run/holdfast.sock"} {
		if _, err := client.New(address, token); err != nil {
			t.Errorf("%q with a token: %v", address, err)
		}
	}
	if _, err := client.New("http://a", "hf_123"); err == nil || strings.Contains(err.Error(), "hf_123") {
		t.Errorf("got %v, want an error without the token", err)
	}
}
