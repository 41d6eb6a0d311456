package main

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// TestKillWithinABulkAction kills a node with SIGKILL while it discards messages. The action goes on after each start, no
// message is skipped, each row has one result, and at most the rows between two records are done without one.
func TestKillWithinABulkAction(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "its process is killed")
	const messages, kills = 300, 3
	dir := t.TempDir()
	node := &child{t: t, address: freeAddress(t), data: filepath.Join(dir, "node")}
	node.args = serveArgs(t, dir, "node", fmt.Sprintf("node: {id: node}\nlisten: %s\ndata: %s\nlog: {level: error}\n", node.address, node.data))
	t.Cleanup(node.kill)
	node.running()
	succeeds(t, "destinations", "pause", "self", "--url", node.url())
	for n := range messages {
		if !submitTo(node.url()+"/v1/messages", fmt.Sprintf(`{"id": "m%d", "destination": "self", "endpoint": "E", "payload": 1}`, n)) {
			t.Fatalf("message %d was refused", n)
		}
	}
	succeeds(t, "bulk", "run", "messages", "discard", "--destination", "self", "--rate", "100", "--url", node.url())
	var page api.BulkPage
	action := func() api.Bulk {
		t.Helper()
		if err := getJSON(node.url()+"/v1/bulk", &page); err != nil || len(page.Actions) != 1 {
			t.Fatalf("%+v, %v", page, err)
		}
		return page.Actions[0]
	}
	cut := 0
	for range kills {
		before := action()
		eventually(t, "rows are done after a start", func() bool {
			now := action()
			return now.Done+now.Refused > before.Done+before.Refused || now.State == "done"
		})
		pause(t.Context(), 200*time.Millisecond)
		if action().State == "running" {
			cut++
		}
		node.kill()
		node.running()
	}
	if cut == 0 {
		t.Error("no kill met the action")
	}
	eventually(t, "the action is done", func() bool { return action().State == "done" })
	a := action()
	var rows api.BulkRowPage
	if err := getJSON(node.url()+"/v1/bulk/"+a.ID+"/rows?limit=1000", &rows); err != nil {
		t.Fatal(err)
	}
	counts, items := map[string]int64{}, map[string]bool{}
	for _, r := range rows.Rows {
		counts[r.Outcome]++
		items[r.Item] = true
	}
	if a.Total != messages || len(items) != messages || len(rows.Rows) != messages || counts["done"] != a.Done || counts["refused"] != a.Refused || a.Done+a.Refused != messages || a.Refused > 50*kills {
		t.Errorf("%+v has rows %v of %d messages", a, counts, len(items))
	}
	for n := range messages {
		var m struct{ State string }
		if err := getJSON(node.url()+fmt.Sprintf("/v1/messages/m%d", n), &m); err != nil || m.State != "discarded" {
			t.Errorf("message %d is %q, %v", n, m.State, err)
		}
	}
	t.Logf("%d kills met the action, %d rows were done without a record", cut, a.Refused)
}
