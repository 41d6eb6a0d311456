package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// The operator pages of a node in a real Chromium, with each state that a message and a destination can have:
// no error, no breach of the policy, nothing that axe finds, nothing asked of other machines, no page that is too wide. What a
// person does works without script and by keyboard alone. TEST_SCREENSHOTS names a folder for photographs of every page.
func TestPagesInABrowser(t *testing.T) {
	racetest.Without(t, "the browser is what takes the time")
	t.Parallel()
	chromium := realBrowser(t)
	node := somethingToSee(t)
	paths := append(noticesToSee(t, node.url()),
		"/ui/", "/ui/messages", "/ui/messages?state=parked", "/ui/messages?state=expired", "/ui/messages/parked-1", "/ui/messages/waits", "/ui/messages/done", "/ui/messages/"+url.PathEscape("<script>1"),
		"/ui/messages/parked-1/discard", "/ui/destinations", "/ui/destinations/erp", "/ui/destinations/away", "/ui/design", "/ui/nowhere",
	)
	chromium.judges(t, node.url(), "parked", paths)
}

// somethingToSee starts a node with parked messages, one that waits for a destination that is away, one that was
// delivered, and one whose names and content are hostile.
func somethingToSee(t *testing.T) *child {
	t.Helper()
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if content, _ := io.ReadAll(r.Body); string(content) == "1" {
			return
		}
		http.Error(w, "order 4711 has no plant <img src=x onerror=alert(1)>", http.StatusUnprocessableEntity)
	}))
	t.Cleanup(refuses.Close)
	node := serving(t, fmt.Sprintf(`
node: {id: plant-4-a}
pages: {environment: production, colour: red}
destinations:
  erp: {call: {url: %q}}
  away: {call: {url: "http://%s"}, schedule: message, charge: every_attempt, retry: {policy: fixed, interval: 1h}} # no attempt while a page is looked at
  spare: {call: {url: %q}}
`, refuses.URL, freeAddress(t), refuses.URL))
	posts := func(path, body string) { t.Helper(); asks(t, http.MethodPost, node.url()+path, body) }
	const hostile = `"payload": {"html": "</pre><script>alert(1)</script>\u202e", "big": 9223372036854775807, "e": 1e400, "lines": [` // closed below
	lines := strings.Repeat("1,", 300) + "1]}"
	posts("/v1/destinations/erp/pause", "")
	for _, id := range []string{"parked-1", "parked-2"} {
		posts("/v1/messages", fmt.Sprintf(`{"id": %q, "destination": "erp", "endpoint": "OrderApproved", "headers": {"tenant": "acme"}, "correlationId": "order-4711", %s%s}`, id, hostile, lines))
	}
	posts("/v1/destinations/erp/resume", "")
	eventually(t, "two are parked", func() bool {
		return strings.Count(get(t, node.url()+"/v1/messages?state=parked"), `"parked"`) == 2
	})
	posts("/v1/messages", `{"id": "waits", "destination": "away", "endpoint": "OrderApproved", "payload": 1}`)
	posts("/v1/messages", `{"id": "done", "destination": "erp", "endpoint": "OrderApproved", "payload": 1}`)
	posts("/v1/destinations/spare/pause", "")
	posts("/v1/messages", fmt.Sprintf(`{"id": "<script>1", "destination": "spare", "endpoint": "<img/src=x/onerror=alert(1)>", %s%s}`, hostile, lines))
	return node
}
