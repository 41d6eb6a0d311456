package main

import (
	"database/sql"
	"errors"
	"fmt"
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
			refused(t, exitConflict, []string{"owned by another process"}, verify...)
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
