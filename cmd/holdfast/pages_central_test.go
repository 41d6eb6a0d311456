package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// The pages of a central with a site, calls, events, subscriptions and an audit log, in a real Chromium: as
// TestPagesInABrowser, without what is done there.
func TestPagesOfACentralInABrowser(t *testing.T) {
	racetest.Without(t, "the browser is what takes the time")
	t.Parallel()
	chromium := realBrowser(t)
	central := centralToSee(t)
	record := api.AuditPage{}
	eventually(t, "the audit log has records", func() bool {
		return json.Unmarshal([]byte(get(t, central.url()+"/v1/audit?kind=Subscription")), &record) == nil && len(record.Records) > 0
	})
	list := []string{
		"/ui/health", "/ui/sites", "/ui/sites/plant-4", "/ui/sites/plant-4?state=pending", "/ui/sites/plant-9", "/ui/sites/plant-4/revoke", "/ui/sites/plant-4/messages/call-1", "/ui/sites/plant-4/messages/call-1/discard",
		"/ui/site-calls", "/ui/site-calls/plant-4/call-1", "/ui/activity", "/ui/activity?kind=nonsense", "/ui/audit", "/ui/audit?errors=true", "/ui/audit/export?actor=local", "/ui/audit/" + record.Records[0].ID,
		"/ui/events", "/ui/events/ev-1?source=central", "/ui/events/ev-1/resend?source=central", "/ui/topics", "/ui/subscriptions", "/ui/subscriptions/shop", "/ui/subscriptions/wms", "/ui/subscriptions/shop/rotate-secret",
		"/ui/settings", "/ui/people", "/ui/settings/tokens", "/ui/settings/tokens/erp/delete", "/ui/settings/keys",
	}
	chromium.judges(t, central.url(), "", list)
}

// centralToSee starts a central, with a site that has parked calls, and one that was never seen.
func centralToSee(t *testing.T) *child {
	t.Helper()
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no such plant <img src=x onerror=alert(1)>", http.StatusUnprocessableEntity)
	}))
	t.Cleanup(refuses.Close)
	does := func(args ...string) string {
		t.Helper()
		out, complaint, code := command(t, args...)
		if code != 0 {
			t.Fatalf("holdfast %s: exit code %d: %s", strings.Join(args, " "), code, complaint)
		}
		return strings.TrimSpace(out)
	}
	folder := t.TempDir()
	sealing, credential := filepath.Join(folder, "seal.key"), filepath.Join(folder, "credential")
	does("keys", "create", sealing)
	central := serving(t, fmt.Sprintf(`
role: central
node: {id: central}
pages: {environment: staging, colour: amber}
secrets: {key: {file: %s}}
webhooks: {addresses: [127.0.0.0/8]}
`, sealing))
	at := "--url=" + central.url()
	does("enroll", central.url(), does("sites", "add", "plant-4", "--central", central.url(), at), "--file", credential)
	does("sites", "add", "plant-9", "--central", central.url(), at)
	site := serving(t, fmt.Sprintf(`
role: site
node: {id: plant-4}
central: {url: %q, credential: %s}
destinations:
  erp: {call: {url: %q}}
`, central.url(), credential, refuses.URL))
	there := "--url=" + site.url()
	does("destinations", "pause", "erp", there) // else who sends is told of the refusal, and nothing is parked
	for _, id := range []string{"call-1", "call-2"} {
		does("send", "erp", "orders", `{"html":"</pre><script>alert(1)</script>","big":9223372036854775807}`, "--id", id, there)
	}
	does("destinations", "resume", "erp", there)
	does("topics", "set", "orders", "--description", "Orders <b>of</b> plants", at)
	hook := filepath.Join(folder, "hook.yaml")
	write(t, hook, fmt.Sprintf("topics: [orders]\nfilter: {types: ['order.*']}\nurl: %q\nsecrets: [{value: whsec_bm90IGEgc2VjcmV0LCBvbmx5IGFuIGV4YW1wbGU=}]\n", refuses.URL))
	does("subscriptions", "set", "shop", "--file", hook, at)
	does("subscriptions", "set", "wms", "--file", hook, at)
	does("subscriptions", "disable", "wms", "--reason", "ticket <i>4711</i>", at)
	does("events", "publish", "orders", `{"e":1e400}`, "--type", "order.paid", "--id", "ev-1", "--subject", "<img src=x onerror=alert(1)>", at)
	does("events", "publish", "orders", `{}`, "--type", "stock.low", "--id", "ev-2", at)
	does("tokens", "create", "erp", "--role", "operate", at)
	eventually(t, "central knows of the calls", func() bool {
		return strings.Contains(get(t, central.url()+"/v1/site-calls?status=parked"), "call-")
	})
	return central
}
