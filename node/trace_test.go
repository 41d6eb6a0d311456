package node_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/link"
)

// The trace of a caller's request, and the run that it comes from, reach the receiver behind site and central,
// and the API that is called; each stop shows the same trace (issue 14).
func TestATraceReachesTheReceiver(t *testing.T) {
	t.Parallel()
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	const parent, state = "00-" + id + "-00f067aa0ba902b7-01", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"
	seen := make(chan http.Header, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen <- r.Header }))
	t.Cleanup(receiver.Close)
	secrets := t.TempDir()
	if err := os.WriteFile(filepath.Join(secrets, "sign"), []byte(strings.Repeat("k", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	seed := filepath.Join(t.TempDir(), "seed.yaml")
	if err := os.WriteFile(seed, fmt.Appendf(nil, `
channels: {hook: {kind: webhook, settings: {url: "%s", signing: [{secret: sign}]}}}
lists: {operators: {recipients: [{channel: hook}]}}
`, receiver.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	central := serve(t, parse(t, fmt.Sprintf("role: central\nnotifications: {secrets: %q, seed: %q}\n", secrets, seed)))
	_, token := ask(t, "POST", central+"/v1/sites", `{"name":"plant-7"}`)
	conf := parse(t, fmt.Sprintf("role: site\ncentral: {url: %q}\ndestinations: {erp: {call: {url: %q}}}\n", central, receiver.URL))
	if _, err := link.Enroll(t.Context(), link.EnrollConfig{URL: central, Token: between(token, `"token":"`, `"`), File: conf.CredentialFile()}); err != nil {
		t.Fatal(err)
	}
	site := serve(t, conf)

	send := func(path, body, parent string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, site+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Traceparent", parent)
		req.Header.Set("Tracestate", state)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode/100 != 2 {
			t.Fatalf("%s: %s", path, resp.Status)
		}
	}
	const run = `"originInstance":"mixer-3","executionId":"run 1","parentExecutionId":"run 0"`
	send("/v1/messages", `{"id":"call","destination":"erp","endpoint":"Book",`+run+`}`, parent)
	if h := <-seen; h.Get("Traceparent") != parent || h.Get("Tracestate") != state || h.Get("Holdfast-Header-Traceparent") != "" || h.Get("Holdfast-Header-Hf-Execution") != "run+1" {
		t.Errorf("the API is called with %v", h)
	}
	send("/v1/notifications", `{"id":"alarm","list":"operators","subject":"Tank 4 is full",`+run+`}`, parent)
	if h := <-seen; h.Get("Traceparent") != parent || h.Get("Tracestate") != state {
		t.Errorf("the webhook is called with %v", h)
	}
	send("/v1/messages", `{"id":"none","destination":"erp","endpoint":"Book"}`, "00-"+id+"-0000000000000000-01")
	if h := <-seen; h.Get("Traceparent") != "" || h.Get("Tracestate") != "" {
		t.Errorf("a trace that is not valid is passed on: %v", h)
	}
	_, detail := ask(t, "GET", central+"/v1/notifications/alarm", "")
	for where, url := range map[string]string{
		"the call at the site": site + "/v1/messages/call", "the operation": site + "/v1/operations/call", "the notification at the site": site + "/v1/messages/alarm",
		"the notification at central": central + "/v1/notifications/alarm", "the copy at central": central + "/v1/messages/" + between(detail, `"message":"`, `"`),
	} {
		var text string
		waittest.Until(t, where+" shows the trace", func() bool {
			_, text = ask(t, "GET", url, "")
			return strings.Contains(text, `"traceId":"`+id+`"`) && strings.Contains(text, `"executionId":"run 1"`) && strings.Contains(text, `"parentExecutionId":"run 0"`)
		})
	}
}

// between returns what a text has between two others.
func between(text, before, after string) string {
	_, text, _ = strings.Cut(text, before)
	text, _, _ = strings.Cut(text, after)
	return text
}
