package node_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/node"
)

// A node records calls of its API, signs the log at the latest when it stops, and goes on with it after
// a restart. Whoever has a copy of the witness sees that the end of the log is gone.
func TestWhatANodeRecordsIsSignedAndVerified(t *testing.T) {
	t.Parallel()
	witness := filepath.Join(t.TempDir(), "witness")
	c := parse(t, "")
	c.Audit.Witness = witness
	records := func(t *testing.T) int {
		t.Helper()
		return stored(t, c.Data, "SELECT count(*) FROM hf_audit WHERE kind = 'ApiCall'")
	}
	run := func(t *testing.T) {
		t.Helper()
		url := serve(t, c)
		before := records(t)
		if status, text := ask(t, "POST", url+"/v1/destinations/self/pause", ""); status != 200 {
			t.Fatal(status, text)
		}
		waittest.Until(t, "the call is recorded", func() bool { return records(t) > before })
	}
	verify := func(want string, records int64) {
		t.Helper()
		r, err := node.VerifyAudit(context.WithoutCancel(t.Context()), c, nil, "", "")
		if err != nil || len(r.Logs) != 1 || string(r.Status) != want || r.Logs[0].Size < records {
			t.Fatalf("%+v, %v, want %s of %d records", r, err, want, records)
		}
	}
	t.Run("first run", run)
	verify("intact", 2)
	t.Run("second run", run)
	verify("intact", 3)
	folder := c.Data
	text, err := os.ReadFile(witness)
	if err != nil {
		t.Fatal(err)
	}
	other := parse(t, "")
	c.Data = other.Data
	t.Run("another store", run)
	verify("intact", 2)
	c.Data = folder
	if err := os.WriteFile(witness, text[:len(text)/3], 0o600); err != nil {
		t.Fatal(err)
	}
	verify("unanchored", 3) // the store has all checkpoints, and the witness has none of the last records
	info, err := os.Stat(filepath.Join(folder, "audit.key"))
	if err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("the key's file: %v, %v", info, err)
	}
}

func TestANodeWhoseAuditIsOffRecordsNothing(t *testing.T) {
	t.Parallel()
	c := parse(t, "audit: {off: true}")
	t.Run("run", func(t *testing.T) { serve(t, c) })
	r, err := node.VerifyAudit(t.Context(), c, nil, "", "")
	if err != nil || len(r.Logs) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A node verifies what is new by itself, and tells at once, and once, when that is not what was written.
func TestANodeFindsWhatWasDoneToItsAuditLog(t *testing.T) {
	t.Parallel()
	c := parse(t, "log: {format: json}")
	c.Audit.Verify = 20 * time.Millisecond
	var said lockedBuffer
	url := serveWith(t, c, node.Options{Log: &said})
	is := func(what string, want ...string) {
		t.Helper()
		waittest.Until(t, what, func() bool {
			_, health := ask(t, "GET", url+"/_rf/health", "")
			_, numbers := ask(t, "GET", url+"/metrics", "")
			return !slices.ContainsFunc(want, func(part string) bool { return !strings.Contains(health+numbers, part) })
		})
	}
	is("it is verified", "; verified at ", "\nholdfast_audit_intact 1\n", "\nholdfast_audit_verified_records 0\n", "\nholdfast_audit_verified_seconds ")
	if status, text := ask(t, "POST", url+"/v1/destinations/self/pause", ""); status != 200 {
		t.Fatal(status, text)
	}
	is("what is new is verified", "\nholdfast_audit_verified_records 3\n")
	change(t, "sqlite", "file:"+filepath.Join(c.Data, "holdfast.db")+"?_pragma=busy_timeout(20000)",
		"DROP TRIGGER hf_audit_fixed; UPDATE hf_audit_log SET head = zeroblob(32)")
	is("it tells", "changed at record 3", "\nholdfast_audit_intact 0\n")
	if n := strings.Count(said.String(), "the audit log is not what was written"); n != 1 {
		t.Errorf("it was logged %d times", n)
	}
}
