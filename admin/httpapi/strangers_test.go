package httpapi_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/httpapi"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// from asks as if it came from that address.
func (f *fixture) from(t *testing.T, address, method, path, secret string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	r.Host, r.RemoteAddr = "127.0.0.1:8420", address
	r.Header.Set("Authorization", "Bearer "+secret)
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, r)
	return w
}

// logsTo gives a server a log that can be counted.
func logsTo(out *bytes.Buffer) func(*httpapi.Server) {
	return func(s *httpapi.Server) { s.Logger = slog.New(slog.NewTextHandler(out, nil)) }
}

// F1-03: an address that guesses at tokens is answered 429 after 20, its own
// valid tokens and other addresses are served all the while.
func TestWrongTokensAreLimitedByAddress(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		var out bytes.Buffer
		f := serve(t, locked, logsTo(&out))
		secret := tokens(t, f)[api.RoleRead]
		out.Reset()
		long := "/v1/messages/" + strings.Repeat("x", 20<<10)
		got := map[int]int{}
		for i := range 300 {
			w := f.from(t, "192.0.2.7:4711", "GET", long, []string{api.NewSecret(), "short"}[i%2])
			got[w.Code]++
			if wait := w.Header().Get("Retry-After"); (w.Code == http.StatusTooManyRequests) != (wait == "30") {
				t.Errorf("got Retry-After %q with %d", wait, w.Code)
			}
			if i%30 == 0 {
				if w := f.from(t, "192.0.2.7:4711", "GET", "/v1/messages", secret); w.Code != http.StatusOK {
					t.Errorf("a valid token of the same address: got %d %s", w.Code, w.Body)
				}
				if w := f.from(t, "192.0.2.8:4711", "GET", "/v1/messages", secret); w.Code != http.StatusOK {
					t.Errorf("a valid token of another address: got %d %s", w.Code, w.Body)
				}
			}
		}
		if got[http.StatusUnauthorized] != 20 || got[http.StatusTooManyRequests] != 280 {
			t.Errorf("got %v, want 20 of 401 and 280 of 429", got)
		}
		if w := f.from(t, "192.0.2.8:4711", "GET", "/v1/messages", "short"); w.Code != http.StatusUnauthorized {
			t.Errorf("the first wrong token of another address: got %d", w.Code)
		}
		if lines := strings.Count(out.String(), "unknown token refused"); lines != 21 || out.Len() > 21*300 || !strings.Contains(out.String(), "remote=192.0.2.7") {
			t.Errorf("got %d lines of %d bytes", lines, out.Len())
		}
		time.Sleep(time.Second)
		if w := f.from(t, "192.0.2.7:4711", "GET", long, "short"); w.Code != http.StatusUnauthorized {
			t.Errorf("a second later: got %d", w.Code)
		}
	})
}

// F1-03: a store that fails is not written of once for each made-up token.
func TestALookUpThatFailsFillsNoLog(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		var out bytes.Buffer
		f := serve(t, locked, logsTo(&out))
		f.store.FailWith(errors.New("disk I/O error"))
		for range 500 {
			if w := f.from(t, "192.0.2.7:4711", "GET", "/v1/messages", api.NewSecret()); w.Code != http.StatusInternalServerError {
				t.Fatalf("got %d %s", w.Code, w.Body)
			}
		}
		if lines := strings.Count(out.String(), "\n"); lines != 200 || !strings.Contains(out.String(), `remote=192.0.2.7 doing="look the token up" error="disk I/O error"`) {
			t.Errorf("got %d lines, want 200:\n%.500s", lines, out.String())
		}
	})
}

// F1-03: a fault that anybody can meet is not written of once for each request,
// nor with all of a long path.
func TestPanicsFillNoLog(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		var out bytes.Buffer
		f := serve(t, logsTo(&out), func(s *httpapi.Server) {
			s.Mounts = []httpapi.Mount{{Pattern: "GET /broken/{rest...}", Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("broken") }), Open: true}}
		})
		for range 500 {
			if w := f.from(t, "192.0.2.7:4711", "GET", "/broken/"+strings.Repeat("x", 2<<10), ""); w.Code != http.StatusInternalServerError {
				t.Fatalf("got %d %s", w.Code, w.Body)
			}
		}
		if lines := strings.Count(out.String(), "\n"); lines != 200 || out.Len() > 200*16<<10 {
			t.Errorf("got %d lines of %d bytes, want 200", lines, out.Len())
		}
	})
}
