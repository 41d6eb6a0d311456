package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// OI-14, with real processes: a copy of a node that works; a restore that a
// running node refuses; after it, what was delivered meanwhile is delivered
// again, and the receiver has it once.
func TestOI14ANodeIsBroughtBackFromItsBackup(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret.txt")
	write(t, secret, "c2VjcmV0IG9mIHR3byB0ZXN0IG5vZGVzIG9ubHk=\n")
	receiver := &child{t: t, address: freeAddress(t), data: filepath.Join(t.TempDir(), "data")}
	receiver.args = serveArgs(t, t.TempDir(), "warehouse", fmt.Sprintf(
		"node: {id: warehouse}\nlisten: %s\ndata: %s\nreceive:\n  secrets: {shop: {file: %s}}\n  endpoints: {StockCounted: {keep: true}}\n", receiver.address, receiver.data, secret))
	shop := serving(t, fmt.Sprintf(
		"node: {id: shop}\ndestinations:\n  warehouse: {url: \"%s\", secret: {file: %s}, retry: {policy: fixed, interval: 50ms}}\n", receiver.url(), secret))
	send := func(id string) {
		t.Helper()
		if _, stderr, code := command(t, "send", "warehouse", "StockCounted", "1", "--id", id, "--url", shop.url()); code != exitOK {
			t.Fatalf("send: exit code %d: %s", code, stderr)
		}
	}
	drained := func() {
		t.Helper()
		var stats struct{ Pending, Sending int }
		eventually(t, "nothing waits any more", func() bool {
			return getJSON(shop.url()+"/_rf/outbox/stats", &stats) == nil && stats.Pending+stats.Sending == 0
		})
	}
	for n := range 5 {
		send(fmt.Sprint("count-", n))
	}
	folder := t.TempDir()
	out, stderr, code := command(t, "backup", folder, "--json", "--url", shop.url())
	var made struct {
		Path string `json:"path"`
		Size int64  `json:"size"`
	}
	if err := json.Unmarshal([]byte(out), &made); err != nil || code != exitOK || made.Size == 0 {
		t.Fatalf("backup: exit code %d, %q, %v: %s", code, out, err, stderr)
	}
	refused(t, exitUsage, []string{"does not exist on the machine of the node"}, "backup", filepath.Join(folder, "none"), "--url", shop.url())
	send("later")
	receiver.start()
	t.Cleanup(receiver.kill)
	receiver.ready()
	drained()
	refused(t, exitConflict, []string{"owned by another process", "process "}, "restore", made.Path, "--data", shop.data)
	refused(t, exitConflict, []string{"to ask a running node, leave --data out"}, "backup", folder, "--data", shop.data)

	shop.kill()
	out, stderr, code = command(t, "restore", made.Path, "--data", shop.data)
	if code != exitOK || !strings.Contains(out, "what was there is kept as ") {
		t.Fatalf("restore: exit code %d: %s%s", code, out, stderr)
	}
	shop.start()
	shop.ready()
	drained()
	for id, want := range map[string]int{"count-0": exitOK, "count-4": exitOK, "later": exitNotFound} {
		if out, _, got := command(t, "messages", "show", id, "--url", shop.url()); got != want || got == exitOK && !strings.Contains(out, "delivered") {
			t.Errorf("%s: exit code %d, want %d: %s", id, got, want, out)
		}
	}
	var inbox struct{ Size, Duplicates int }
	if err := getJSON(receiver.url()+"/_rf/inbox/stats", &inbox); err != nil || inbox.Size != 6 || inbox.Duplicates < 5 {
		t.Errorf("the receiver has %d ids and %d duplicates, %v; want 6 and 5 at least", inbox.Size, inbox.Duplicates, err)
	}
}
