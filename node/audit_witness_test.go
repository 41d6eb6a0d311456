package node_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/node"
)

// vault is a server that keeps one text, as WebDAV and object stores do.
type vault struct {
	mu       sync.Mutex
	text     string
	version  int
	away     bool
	meddle   func(v *vault) // once, between a GET and its PUT
	requests []string
}

func (v *vault) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.requests = append(v.requests, r.Method)
	tag := fmt.Sprintf("%q", fmt.Sprint("v", v.version))
	switch {
	case v.away:
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.Header.Get("Authorization") != "Bearer s3cr3t":
		w.WriteHeader(http.StatusUnauthorized)
	case r.Method == http.MethodGet && v.version == 0:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodGet:
		w.Header().Set("ETag", tag)
		_, _ = io.WriteString(w, v.text)
		if v.meddle != nil {
			v.meddle(v)
			v.meddle = nil
		}
	case r.Method == http.MethodPut && v.version > 0 && r.Header.Get("If-Match") != tag:
		w.WriteHeader(http.StatusPreconditionFailed)
	case r.Method == http.MethodPut:
		text, _ := io.ReadAll(r.Body)
		v.text, v.version = string(text), v.version+1
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

func (v *vault) with(do func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	do()
}

// A node gives its checkpoints to a witness by URL, over TLS and with a token. One that is away keeps nothing from being
// signed, is told, and gets the newest later. Whoever cuts the log together with its checkpoints is found by it.
func TestAWitnessByURLHasTheCheckpoints(t *testing.T) {
	t.Parallel()
	v := &vault{}
	server := httptest.NewTLSServer(v)
	t.Cleanup(server.Close)
	folder := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ca := write("ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	token := write("token", "wrong\n")
	c := parse(t, "")
	c.Audit.Remote = config.RemoteWitness{URL: server.URL + "/shop", Token: token, CA: ca}
	verify := func(what string, want audit.Verdict) {
		t.Helper()
		r, err := node.VerifyAudit(context.WithoutCancel(t.Context()), c, nil, "", "")
		if err != nil || r.Status != want {
			t.Fatalf("%s: %+v, %v, want %s", what, r, err, want)
		}
	}
	t.Run("first run", func(t *testing.T) {
		url := serve(t, c)
		sign := func(status int) {
			t.Helper()
			if code, text := ask(t, "POST", url+"/v1/audit/checkpoint", ""); code != status {
				t.Fatalf("%d %s, want %d", code, text, status)
			}
		}
		if code, text := ask(t, "POST", url+"/v1/destinations/self/pause", ""); code != 200 {
			t.Fatal(code, text)
		}
		waittest.Until(t, "it is recorded", func() bool { return stored(t, c.Data, "SELECT count(*) FROM hf_audit") > 1 })
		sign(503) // the token is wrong
		if n := stored(t, c.Data, "SELECT count(*) FROM hf_audit_checkpoint"); n != 1 {
			t.Errorf("%d checkpoints were signed", n)
		}
		write("token", "s3cr3t\n")
		sign(200)
		v.with(func() {
			if !strings.HasPrefix(v.text, "holdfast/") {
				t.Errorf("it keeps %q", v.text)
			}
			v.meddle = func(v *vault) { v.version++ }
		})
		sign(200) // and its record
		waittest.Until(t, "the records of the calls are there", func() bool { return stored(t, c.Data, "SELECT count(*) FROM hf_audit") > 3 })
		v.with(func() { v.requests = nil })
		sign(200)
		v.with(func() {
			// The node's own checkpoint of each minute may have come first.
			if got := strings.Join(v.requests, " "); got != "GET PUT GET PUT" && got != "GET PUT" && got != "" {
				t.Errorf("asked %s", got)
			}
			if v.meddle != nil || !strings.Contains(v.text, "\nchain ") {
				t.Errorf("it keeps %q", v.text)
			}
		})
		v.with(func() { v.away = true })
		waittest.Until(t, "it is told that the witness is away", func() bool {
			_, _ = ask(t, "POST", url+"/v1/audit/checkpoint", "")
			_, text := ask(t, "GET", url+"/metrics", "")
			return !strings.Contains(text, "\nholdfast_audit_witness_failures_total 1\n") && strings.Contains(text, "\nholdfast_audit_witness_failures_total ")
		})
		v.with(func() { v.away = false })
	})
	verify("after the stop", audit.Intact)
	kept := ""
	v.with(func() { kept = v.text })
	if n := strings.Count(kept, "\nchain "); n != 1 {
		t.Errorf("%d notes are kept, want the newest:\n%s", n, kept)
	}
	change(t, "sqlite", "file:"+filepath.Join(c.Data, "holdfast.db"), `DROP TRIGGER hf_audit_kept; DROP TRIGGER hf_audit_fixed;
		DELETE FROM hf_audit WHERE seq > 2; DELETE FROM hf_audit_value WHERE seq > 2; DELETE FROM hf_audit_checkpoint;
		UPDATE hf_audit_log SET size = 2, head = (SELECT hash FROM hf_audit WHERE seq = 2)`)
	verify("cut, with its checkpoints", audit.Broken)
	v.with(func() { v.away = true })
	if r, err := node.VerifyAudit(t.Context(), c, nil, "", ""); err == nil || !strings.Contains(err.Error(), "it answered 503") {
		t.Errorf("without the witness: %+v, %v", r, err)
	}
}
