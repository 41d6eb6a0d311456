package web_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// U2, U3, U19: seven tabs share one stream, and nothing moves under what somebody has chosen or marked.
func TestTabsShareOneStreamOfHints(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not installed")
	}
	out, err := exec.CommandContext(t.Context(), "node", "--test", "testdata/live.test.mjs").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// A page that refreshes itself listens, and one that is no list does not.
func TestPagesListenWhileTheyRefresh(t *testing.T) {
	t.Parallel()
	s := serve(t, api.Everything())
	wants(t, body(t, s.get(t, "/ui/")), "/static/live-")
	if strings.Contains(body(t, s.get(t, "/ui/design")), "/static/live-") {
		t.Error("a page that does not refresh listens")
	}
}
