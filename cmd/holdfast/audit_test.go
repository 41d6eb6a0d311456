package main

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// The log of a node that was killed is intact, and its exit codes say what somebody has done to it.
func TestTheAuditLogIsVerifiedAfterAKill(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "its process is killed")
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	node := &child{t: t, address: freeAddress(t)}
	node.args = serveArgs(t, dir, "audited", fmt.Sprintf("node: {id: audited}\nlisten: %s\ndata: data\naudit: {witness: witness}\n", node.address))
	t.Cleanup(node.kill)
	verify := []string{"audit", "verify", "--config", node.args[len(node.args)-1]}
	for round := range 3 {
		node.running()
		succeeds(t, "destinations", "pause", "self", "--url", node.url())
		if round == 0 {
			if got, _, code := command(t, verify...); code != exitWarnings || !strings.Contains(got, "never anchored") {
				t.Errorf("beside a node that has signed nothing yet, verify ended with %d and said\n%s", code, got)
			}
			if err := node.end(); err != nil { // signs what there is
				t.Fatal(err)
			}
		} else {
			node.kill()
		}
		if got := succeeds(t, verify...); !strings.HasSuffix(got, "intact\n") {
			t.Errorf("verify said\n%s", got)
		}
	}
	if _, _, code := command(t, append(verify, "--key", "nonsense")...); code != exitUsage {
		t.Errorf("a key that is none: exit code %d", code)
	}
	handle, err := sql.Open("sqlite", filepath.Join(data, "holdfast.db"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = handle.ExecContext(t.Context(), "DROP TRIGGER hf_audit_fixed; UPDATE hf_audit SET actor = 'nobody' WHERE seq = 1")
	if err = errors.Join(err, handle.Close()); err != nil {
		t.Fatal(err)
	}
	report, _, code := command(t, append(verify, "--json")...)
	if code != exitFailing || !strings.Contains(report, `"fault":"changed","seq":1`) {
		t.Errorf("verify ended with %d and said\n%s", code, report)
	}
}

// A hold, its release and an erasure are made from the command line, and none of them without a reason.
func TestWhatStaysInTheAuditLogIsSaidFromTheCommandLine(t *testing.T) {
	t.Parallel()
	node := &child{t: t, address: freeAddress(t)}
	node.args = serveArgs(t, t.TempDir(), "held", fmt.Sprintf("node: {id: held}\nlisten: %s\ndata: data\n", node.address))
	t.Cleanup(node.kill)
	node.running()
	on := []string{"--url", node.url()}
	succeeds(t, append(on, "destinations", "pause", "self")...)
	succeeds(t, append(on, "audit", "query", "--target", "a.smit@example.org")...)
	for _, c := range []struct{ says, command string }{
		{"case would keep 1 records", "audit hold case --kind Pause --reason inquiry --dry-run"},
		{"case keeps 1 records", "audit hold case --kind Pause --reason inquiry"},
		{"kind=Pause  inquiry", "audit holds"},
		{"", "audit release case --reason ended"},
		{"NAME", "audit holds"},
		{"1 values of 1 records would be erased, 0 kept", "audit erase --person A.SMIT@example.org --reason 4711 --dry-run"},
		{"1 values of 1 records erased, 0 kept", "audit erase --person A.SMIT@example.org --reason 4711"},
	} {
		if got := succeeds(t, append(on, strings.Fields(c.command)...)...); !strings.Contains(got, c.says) {
			t.Errorf("%s: %s", c.command, got)
		}
	}
	for _, wrong := range []string{"audit hold case --kind Pause", "audit release case", "audit erase --person a@b.c", "audit erase --reason r"} {
		if _, _, code := command(t, append(on, strings.Fields(wrong)...)...); code != exitUsage {
			t.Errorf("%s: exit code %d", wrong, code)
		}
	}
}

// An export is verified without its node: by the key that signed it, which verify prints.
func TestAnAuditExportIsVerifiedWithoutItsNode(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "each of its programs runs one command and ends")
	dir := t.TempDir()
	node := &child{t: t, address: freeAddress(t)}
	node.args = serveArgs(t, dir, "exported", fmt.Sprintf("node: {id: exported}\nlisten: %s\ndata: data\n", node.address))
	t.Cleanup(node.kill)
	node.running()
	succeeds(t, "destinations", "pause", "self", "--url", node.url())
	if err := node.end(); err != nil { // signs what there is
		t.Fatal(err)
	}
	node.running()
	file := filepath.Join(dir, "audit.jsonl")
	succeeds(t, "audit", "export", "--out", file, "--url", node.url())
	verify := []string{"audit", "verify", "--file", file, "--json"}
	report, _, code := command(t, verify...)
	_, key, found := strings.Cut(report, `"key":"`)
	key, _, _ = strings.Cut(key, `"`)
	if code != exitWarnings || !found {
		t.Fatalf("without a key: exit code %d: %s", code, report)
	}
	if report, _, code := command(t, append(verify, "--key", key)...); code != exitOK {
		t.Errorf("by its key: exit code %d: %s", code, report)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.Replace(text, []byte(`"status":"Success"`), []byte(`"status":"Refused"`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if report, _, code := command(t, append(verify, "--key", key)...); code != exitFailing || !strings.Contains(report, `"fault":"changed"`) {
		t.Errorf("changed: exit code %d: %s", code, report)
	}
	refused(t, exitUsage, []string{"one log"}, append(verify, "--log", "x")...)

	note := succeeds(t, "audit", "checkpoint", "--url", node.url())
	if !strings.HasPrefix(note, "holdfast/exported/exported/") {
		t.Errorf("the checkpoint is %s", note)
	}
	_, id, _ := strings.Cut(succeeds(t, "audit", "query", "--kind", "Pause", "--json", "--url", node.url()), `"id":"`)
	id, _, _ = strings.Cut(id, `"`)
	proof := filepath.Join(dir, "proof.json")
	succeeds(t, "audit", "prove", id, "--out", proof, "--url", node.url())
	if got := succeeds(t, "audit", "verify", "--proof", proof, "--key", key); !strings.Contains(got, `"kind":"Pause"`) || !strings.HasSuffix(got, "intact\n") {
		t.Errorf("the proof: %s", got)
	}
	if _, _, code := command(t, "audit", "verify", "--proof", proof); code != exitWarnings {
		t.Errorf("the proof, without a key: exit code %d", code)
	}
	if text, err = os.ReadFile(proof); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(proof, bytes.Replace(text, []byte(`"index":`), []byte(`"index":1`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, code := command(t, "audit", "verify", "--proof", proof, "--key", key); code != exitFailing {
		t.Errorf("another number: exit code %d", code)
	}
	refused(t, exitFailure, []string{"not a proof"}, "audit", "verify", "--proof", file, "--key", key)
	refused(t, exitUsage, []string{"exclude"}, append(verify, "--proof", proof)...)

	next := filepath.Join(dir, "data", "audit.key.new")
	if err := os.WriteFile(next, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, exitConflict, []string{"cannot be used"}, "audit", "rotate-key", "--reason", "yearly", "--url", node.url())
	if err := os.Remove(next); err != nil {
		t.Fatal(err)
	}
	rotate := []string{"audit", "rotate-key", "--reason", "yearly", "--url"}
	refused(t, exitUnreachable, []string{"--from " + key}, append(rotate, losing(t, node.url(), "/v1/audit/rotate-key"))...)
	if note := succeeds(t, append(rotate, node.url(), "--from", key)...); strings.Count(note, "\nkey ") != 2 {
		t.Errorf("the key is changed: %s", note)
	}
	if got := succeeds(t, "audit", "query", "--kind", "KeyChange", "--url", node.url()); strings.Count(got, "KeyChange") != 1 {
		t.Errorf("the key is changed once: %s", got)
	}
	refused(t, exitConflict, []string{"has not handed over"}, append(rotate, node.url(), "--from", "x+00000000+AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")...)
	refused(t, exitUsage, []string{"not a verifier key"}, append(rotate, node.url(), "--from", "nonsense")...)
	again := filepath.Join(dir, "again.jsonl")
	succeeds(t, "audit", "export", "--out", again, "--url", node.url())
	succeeds(t, "audit", "verify", "--file", again, "--key", key)
	if err := node.end(); err != nil {
		t.Fatal(err)
	}
	succeeds(t, "audit", "verify", "--config", node.args[len(node.args)-1], "--key", key)
	if got := succeeds(t, "audit", "verify", "--config", node.args[len(node.args)-1]); strings.Contains(got, key) {
		t.Errorf("the old key signs still: %s", got)
	}
}

// losing returns the address of a proxy to a node that loses each answer to a path.
func losing(t *testing.T, address, path string) string {
	t.Helper()
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ModifyResponse: func(r *http.Response) error {
			if r.Request.URL.Path == path {
				panic(http.ErrAbortHandler)
			}
			return nil
		},
	})
	t.Cleanup(server.Close)
	return server.URL
}
