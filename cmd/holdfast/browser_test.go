package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// browser is a Chromium, with what drives it and judges its pages.
type browser struct{ tools, chromium string }

// realBrowser finds a Chromium. Without it the test is skipped.
func realBrowser(t *testing.T) browser {
	t.Helper()
	tools := os.Getenv("TEST_BROWSER")
	if tools == "" {
		t.Skip("TEST_BROWSER does not name playwright-core and axe-core, which scripts/test installs")
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return browser{tools, path}
		}
	}
	t.Skip("there is no Chromium")
	return browser{}
}

// judges looks at pages of a node: no error, no breach of the policy, nothing that axe finds, nothing asked of other machines, no
// page that is too wide. It then does what a person would to the messages whose ids begin with parked; empty: it does nothing.
// TEST_SCREENSHOTS names a folder for photographs of every page.
func (b browser) judges(t *testing.T, node, parked string, paths []string) {
	t.Helper()
	pages, err := json.Marshal(paths)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", filepath.Join("..", "..", "web", "testdata", "browser", "pages.mjs"))
	cmd.Env = append(os.Environ(), "BASE="+node, "BROWSER="+b.tools, "CHROMIUM="+b.chromium, "SHOTS="+os.Getenv("TEST_SCREENSHOTS"), "PARKED="+parked, "PAGES="+string(pages))
	out, err := cmd.CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if last := lines[len(lines)-1]; err != nil || last != fmt.Sprintf("judged %d pages", len(paths)) {
		t.Fatalf("%v: %s", err, out)
	}
	for _, fault := range lines[:len(lines)-1] {
		t.Error(fault)
	}
}

// asks sends a request that must succeed, with JSON, and returns the answer.
func asks(t *testing.T, method, url, body string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode >= http.StatusMultipleChoices {
		t.Fatalf("%s %s: %d %s", method, url, resp.StatusCode, text)
	}
	return string(text)
}
