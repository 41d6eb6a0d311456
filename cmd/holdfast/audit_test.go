package main

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The log of a node that was killed is intact, and its exit codes say what somebody has done to it.
func TestTheAuditLogIsVerifiedAfterAKill(t *testing.T) {
	t.Parallel()
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

// An export is verified without its node: by the key that signed it, which verify prints.
func TestAnAuditExportIsVerifiedWithoutItsNode(t *testing.T) {
	t.Parallel()
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
}
