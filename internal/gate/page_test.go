package gate_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/internal/gate"
)

// A refusal of a page is a page, whichever part of the gate refuses, and that of another route is a problem document.
// A request by a foreign name gets no page: it would tell a foreign page the node's name.
func TestARefusalOfAPageIsAPage(t *testing.T) {
	t.Parallel()
	asPage := func(w http.ResponseWriter, _ *http.Request, p *api.Problem) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(p.Status)
	}
	keys := gate.Keys{As: func(ctx context.Context, _ string, _ api.Grant) context.Context { return ctx }}
	fails := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("on purpose") })
	handler, err := gate.New(gate.Settings{Page: asPage}, keys, []gate.Route{
		{Pattern: "POST /ui/fails", Handler: fails, Right: api.Read, Page: true},
		{Pattern: "POST /v1/fails", Handler: fails, Right: api.Read},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, host, origin string
		status             int
		page               bool
	}{
		{"a panic", "localhost", "", http.StatusInternalServerError, true},
		{"a page of another site", "localhost", "https://evil.example", http.StatusForbidden, true},
		{"another name", "evil.example", "", http.StatusForbidden, false},
	} {
		for path, page := range map[string]bool{"/ui/fails": c.page, "/v1/fails": false} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, http.NoBody)
			r.Host, r.RemoteAddr = c.host, "127.0.0.1:1"
			if c.origin != "" {
				r.Header.Set("Origin", c.origin)
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			want := api.ProblemType
			if page {
				want = "text/html"
			}
			if got := w.Header().Get("Content-Type"); w.Code != c.status || got != want {
				t.Errorf("%s: %s: status %d, %s; want %d, %s", c.name, path, w.Code, got, c.status, want)
			}
		}
	}
}
