package node

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/config"
)

// A witness that says for a moment that it has nothing keeps all that it has, also what a node has given to it that has begun
// anew.
func TestAWitnessThatSaysThatItHasNothingLosesNothing(t *testing.T) {
	t.Parallel()
	text, away := "", false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodGet && (away || text == ""):
			w.WriteHeader(http.StatusNotFound)
		case r.Method == http.MethodGet:
			_, _ = io.WriteString(w, text)
		case r.Header.Get("If-None-Match") == "*" && text != "":
			w.WriteHeader(http.StatusPreconditionFailed)
		default:
			all, _ := io.ReadAll(r.Body)
			text = string(all)
		}
	}))
	t.Cleanup(server.Close)
	note := func(origin string) string {
		t.Helper()
		key, err := audit.OpenKey(filepath.Join(t.TempDir(), "key"))
		if err != nil {
			t.Fatal(err)
		}
		c := audit.Checkpoint{Origin: origin, Size: 1, Time: time.Now()}
		text, err := c.Sign(key)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	keep := func(w *webWitness, origin string, want bool) {
		t.Helper()
		if err := w.Keep(t.Context(), note(origin)); (err == nil) != want {
			t.Errorf("%s: %v", origin, err)
		}
	}
	of := func() *webWitness {
		t.Helper()
		w, err := newWebWitness(&config.RemoteWitness{URL: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	first := of()
	keep(first, "holdfast/a/n/1", true)
	was := text
	away = true
	keep(first, "holdfast/b/n/1", false)
	keep(of(), "holdfast/b/n/1", false)
	if text != was {
		t.Errorf("it keeps %q, want %q", text, was)
	}
	away = false
	keep(first, "holdfast/b/n/1", true)
	if len(text) <= len(was) || text[:len(was)] != was {
		t.Errorf("it keeps %q", text)
	}
}
