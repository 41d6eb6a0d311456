package gate_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/internal/gate"
)

// Only what a person does keeps their session alive, not what an open page asks for.
func TestWhatAPageAsksForDoesNotCount(t *testing.T) {
	t.Parallel()
	var last bool
	done := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	h, err := gate.New(gate.Settings{AuthRequired: true}, gate.Keys{
		As: func(ctx context.Context, _ string, _ api.Grant) context.Context { return ctx },
		Session: func(_ context.Context, _ [32]byte, counts bool) (id, actor, rights string, err error) {
			last = counts
			return "s", api.User("anna"), "admin", nil
		},
	}, []gate.Route{
		{Pattern: "/page", Right: api.Read, Handler: done},
		{Pattern: "GET /events", Right: api.Read, Handler: done, Long: true},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method, path string
		htmx, counts bool
	}{
		{http.MethodGet, "/page", false, true},
		{http.MethodGet, "/page", true, false},
		{http.MethodPost, "/page", true, true},
		{http.MethodGet, "/events", false, false},
	} {
		r := httptest.NewRequestWithContext(t.Context(), c.method, c.path, nil)
		r.AddCookie(gate.SessionCookie(r, api.NewSessionSecret()))
		if c.htmx {
			r.Header.Set("HX-Request", "true")
		}
		last = !c.counts
		if h.ServeHTTP(httptest.NewRecorder(), r); last != c.counts {
			t.Errorf("%s %s, by htmx %t: counts %t, want %t", c.method, c.path, c.htmx, last, c.counts)
		}
	}
}
