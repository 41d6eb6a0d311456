package node_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/waittest"
)

// A person who asks for a verification gets one, also of a node that makes none by itself.
func TestAPersonHasTheAuditLogVerified(t *testing.T) {
	t.Parallel()
	c := parse(t, "log: {format: json}")
	c.Audit.Verify = config.Never
	url := serve(t, c)
	if _, health := ask(t, http.MethodGet, url+"/_rf/health", ""); strings.Contains(health, "verified at") {
		t.Fatal("it was verified before anybody asked")
	}
	for range 3 { // those that come while one is under way are one
		if status, text := ask(t, http.MethodPost, url+"/ui/audit/verify", ""); status >= http.StatusBadRequest {
			t.Fatal(status, text)
		}
	}
	waittest.Until(t, "it is verified", func() bool {
		_, health := ask(t, http.MethodGet, url+"/_rf/health", "")
		return strings.Contains(health, "; verified at ")
	})
	waittest.Until(t, "nothing is under way any more", func() bool {
		_, page := ask(t, http.MethodGet, url+"/ui/audit", "")
		return strings.Contains(page, "<h1>Audit</h1>") && !strings.Contains(page, "verifying")
	})
}
