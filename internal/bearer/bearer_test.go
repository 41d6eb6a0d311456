package bearer_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast/internal/bearer"
)

func TestSecretsAreLongRandomAndChecked(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		s := bearer.New("hfe_")
		if len(s) != 53 || !bearer.WellFormed("hfe_", s) || seen[s] {
			t.Fatalf("got %q", s)
		}
		seen[s] = true
		for _, wrong := range []string{s[1:], s + "0", "hfs_" + s[4:], s[:10] + flip(s[10]) + s[11:], strings.ToUpper(s)} {
			if bearer.WellFormed("hfe_", wrong) {
				t.Errorf("%q passes for %q", wrong, s)
			}
		}
	}
}

func flip(c byte) string {
	if c == 'a' {
		return "b"
	}
	return "a"
}

func TestTheSecretOfARequest(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{
		"": "", "Bearer x": "x", "bearer  x ": "x", "Basic x": "", "Bearer": "", "x": "",
	} {
		if got := bearer.Of(&http.Request{Header: http.Header{"Authorization": {header}}}); got != want {
			t.Errorf("%q: got %q, want %q", header, got, want)
		}
	}
	h := http.Header{}
	bearer.Set(h, "x")
	if got := bearer.Of(&http.Request{Header: h}); got != "x" {
		t.Errorf("got %q", got)
	}
}
