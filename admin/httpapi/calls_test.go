package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/httpapi"
)

// callLog keeps what it is told.
type callLog struct{ lines []string }

func (c *callLog) Append(_ context.Context, entries ...holdfast.Entry) error {
	for i := range entries {
		e := &entries[i]
		c.lines = append(c.lines, fmt.Sprint(e.Kind, " ", e.Code, " ", e.Subject, " ", e.Actor, " ", e.Outcome))
	}
	return holdfast.CheckEntries(entries)
}

// Each call that may change something is told of, with who asked and what came of it; what
// is only looked at, and what is sent, is not.
func TestCallsAreToldOf(t *testing.T) {
	t.Parallel()
	log := &callLog{}
	f := serve(t, func(s *httpapi.Server) { s.Calls = log })
	for _, c := range []call{
		{method: http.MethodGet, path: "/v1/tokens"},
		{method: http.MethodPost, path: "/v1/messages", body: `{"destination": "inventory", "endpoint": "E", "payload": {}}`},
		{method: http.MethodPost, path: "/v1/tokens", body: `{"name": "ci", "role": "read"}`},
		{method: http.MethodDelete, path: "/v1/tokens/ci"},
		{method: http.MethodDelete, path: "/v1/tokens/ci"},
		{method: http.MethodPost, path: "/v1/sites/plant-7/messages/m/discard", body: `{}`},
	} {
		f.do(t, c)
	}
	want := []string{
		"called create-token  local delivered", "called delete-token ci local delivered", "called delete-token ci local permanent",
		"called discard-site-message plant-7/m local permanent",
	}
	if d := cmp.Diff(log.lines, want); d != "" {
		t.Errorf("(-got +want):\n%s", d)
	}
}

// Each route says whether the audit log has its calls (AU-09): those that change something or read
// content, but not health, numbers, lists without content, and what is sent. A new route is added here.
func TestEachRouteSaysWhetherItsCallsAreRecorded(t *testing.T) {
	t.Parallel()
	var doc struct {
		Paths map[string]map[string]struct {
			OperationID string `json:"operationId"`
			Audited     *bool  `json:"x-audited"`
		} `json:"paths"`
	}
	w := serve(t).do(t, call{method: http.MethodGet, path: "/openapi.json"})
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	recorded := map[string][]string{}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			switch {
			case op.Audited == nil:
				if !strings.HasPrefix(path, "/v1/link") && !slices.Contains([]string{"/healthz", "/readyz", "/metrics", "/openapi.json"}, path) {
					t.Errorf("%s %s does not say whether its calls are recorded", method, path)
				}
			case method == "get" && *op.Audited:
				recorded["reads content"] = append(recorded["reads content"], op.OperationID)
			case method == "get":
				recorded["reads no content"] = append(recorded["reads no content"], op.OperationID)
			case !*op.Audited:
				recorded["sends"] = append(recorded["sends"], op.OperationID)
			}
		}
	}
	for _, list := range recorded {
		slices.Sort(list)
	}
	if d := cmp.Diff(recorded, map[string][]string{
		"reads content": {"get-event", "get-message", "get-notification", "get-site-message", "list-inbox", "query-audit"},
		"reads no content": {
			"audit-kpis", "audit-kpis-by-site", "count-site-calls", "explain-event", "export-audit", "get-audit-record", "get-bulk", "get-caller", "get-channel", "get-destination",
			"get-list", "get-operation", "get-person", "get-schedule", "get-site", "get-site-call", "get-subscription", "get-topic", "health", "history", "inbox-stats", "list-activity",
			"list-audit-holds", "list-bulk", "list-bulk-rows", "list-causes", "list-channels", "list-destinations", "list-events", "list-followers", "list-keys", "list-lists",
			"list-messages", "list-notifications", "list-operations", "list-people", "list-person-sessions", "list-sessions", "list-site-calls", "list-site-messages", "list-sites",
			"list-subscriptions", "list-tokens", "list-topics", "notification-kpis", "outbox-failed", "outbox-stats", "overview", "prove-audit-record", "stream-activity",
			"stream-hints",
		},
		"sends": {"publish-event", "send-message", "send-notification"},
	}); d != "" {
		t.Errorf("(-got +want):\n%s", d)
	}
}
