package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-mq/holdfast/doctor"
)

// SF-02, SF-03: a person calls a foreign API through the node, and is told what
// it said; a doctor looks whether it is there and calls nothing.
func TestSendCallsAForeignAPI(t *testing.T) {
	t.Parallel()
	called := atomic.Int64{}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		called.Add(1)
		switch {
		case r.Header.Get("X-Api-Key") != "hunter2":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/no":
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, "sold out")
		default:
			_, _ = io.WriteString(w, `{"seat": 7}`)
		}
	}))
	defer api.Close()
	key := filepath.Join(t.TempDir(), "key")
	write(t, key, "hunter2")
	c := serving(t, fmt.Sprintf(`{node: {id: n}, destinations: {
  api: {call: {url: "%s/{endpoint}", auth: {key: {value: {file: %s}}}}}, away: {call: {url: "http://%s"}}}}`, api.URL, key, freeAddress(t)))
	if out := succeeds(t, "send", "api", "yes", "1", "--id", "a", "--url", c.url()); !strings.Contains(out, `it is delivered; the answer: {"seat": 7}`) {
		t.Errorf("it said %q", out)
	}
	if out := succeeds(t, "send", "api", "yes", "1", "--id", "a", "--url", c.url()); !strings.Contains(out, "a was known already; it is delivered") || called.Load() != 1 {
		t.Errorf("it said %q after %d calls", out, called.Load())
	}
	refused(t, exitConflict, []string{"message b is refused", "409: sold out"}, "send", "api", "no", "--id", "b", "--url", c.url())
	if out := succeeds(t, "send", "away", "x", "--wait", "20s", "--url", c.url()); !strings.Contains(out, "it is pending (unreachable: ") {
		t.Errorf("it said %q", out)
	}
	if out := succeeds(t, "send", "api", "yes", "--wait", "0s", "--url", c.url()); !strings.Contains(out, "it is pending") {
		t.Errorf("it said %q", out)
	}
	refused(t, exitUsage, []string{"wait", "longer than 1m"}, "send", "api", "yes", "--wait", "2h", "--url", c.url())
	before := called.Load()
	checks, _, _, out := examined(t, c.args[2:]...)
	wantChecks(t, checks, map[string]doctor.Status{"api": doctor.OK, "away": doctor.Warning})
	if strings.Contains(out, "hunter2") || called.Load() > before+1 { // the message that nobody waited for
		t.Errorf("%d calls later the doctor says %s", called.Load()-before, out)
	}
}
