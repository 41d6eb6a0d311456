package doctor_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/doctor"
)

// A site that is not enrolled, or whose credential others may read, forwards
// nothing, and somebody must act. A central that is away is waited for.
func TestASiteIsLookedAt(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := config.Default()
	c.Node.ID, c.Role, c.Data, c.Listen = "plant-7", config.Site, t.TempDir(), "127.0.0.1:0"
	c.Central.URL, c.Central.CA = "http://"+l.Addr().String(), "/etc/holdfast/ca.pem"
	hint := ""
	found := func() map[string]doctor.Status {
		got := map[string]doctor.Status{}
		for _, check := range doctor.Examine(t.Context(), doctor.Options{Config: c, Timeout: 5 * time.Second}).Checks {
			if check.Group == "Central" {
				got[check.Name] = check.Status
				hint += check.Hint
			}
		}
		return got
	}
	wants := func(when string, credential, central doctor.Status) {
		t.Helper()
		if got := found(); got["credential"] != credential || got["central"] != central {
			t.Errorf("%s: got %v, want credential %s, central %s", when, got, credential, central)
		}
	}
	wants("before it is enrolled", doctor.Failing, doctor.OK)
	if want := "holdfast enroll " + c.Central.URL + " --file " + c.CredentialFile() + " --ca /etc/holdfast/ca.pem"; !strings.HasSuffix(hint, want) {
		t.Errorf("it says %q, want %q", hint, want)
	}
	file := filepath.Join(c.Data, "credential")
	text := []byte(`{"site": "plant-7", "central": "http://x", "credential": "hfs_x"}`)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	wants("enrolled", doctor.OK, doctor.OK)
	if err := errors.Join(os.Chmod(file, 0o644), l.Close()); err != nil {
		t.Fatal(err)
	}
	wants("with a credential that everybody reads, and nobody at central", doctor.Failing, doctor.Warning)
}
