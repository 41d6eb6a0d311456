package link_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/link"
)

// The credential's file is kept in memory, and yet whatever happens to it
// counts at once: it is rotated, opened to others, damaged, taken away. NO-21.
func TestAChangedCredentialCountsAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "credential")
	put := func(site string) {
		t.Helper()
		text := `{"site":"` + site + `","central":"https://c","credential":"hfs_x"}`
		past := time.Now().Add(-time.Hour) // the same for all: the time alone does not tell
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path+".new", past, past); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	s, err := link.NewSite(link.SiteConfig{URL: "http://127.0.0.1", File: path, Outbox: open(t, "site")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, name := range []string{"plant-1", "plant-2", "plant-3"} {
		put(name)
		for range 2 {
			if got := s.Status(); got.Site != name {
				t.Errorf("site %q, %s; want %s", got.Site, got.Problem, name)
			}
		}
	}
	if runtime.GOOS != "windows" {
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got := s.Status(); got.Site != "" || !strings.Contains(got.Problem, "other users") {
				t.Errorf("open to others: %+v", got)
			}
		}
	}
	for name, text := range map[string]string{
		"cut short": `{"site":"plant-1","cred`, "empty": ``, "of no site": `{"site":"..","credential":"hfs_x"}`, "without a credential": `{"site":"plant-1"}`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if runtime.GOOS != "windows" {
			if err := os.Chmod(path, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		past := time.Now().Add(-time.Hour) // it has been so for long
		if err := os.Chtimes(path, past, past); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got := s.Status(); got.Site != "" || !strings.Contains(got.Problem, "enroll again") {
				t.Errorf("%s: %+v", name, got)
			}
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if got := s.Status(); got.Site != "" || !strings.Contains(got.Problem, "enroll") {
		t.Errorf("taken away: %+v", got)
	}
}
