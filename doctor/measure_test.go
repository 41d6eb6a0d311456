package doctor_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/doctor"
)

func check(t *testing.T, r doctor.Report, name string) doctor.Check {
	t.Helper()
	for _, c := range r.Checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("there is no check %q:\n%s", name, r.String())
	return doctor.Check{}
}

func plain(t *testing.T, listen string) doctor.Options {
	t.Helper()
	c := config.Default()
	c.Node.ID, c.Listen, c.Data = "plant-7", listen, t.TempDir()
	return doctor.Options{Config: c, Timeout: 100 * time.Millisecond, Version: "1"}
}

// Something takes connections at the node's address and never answers, and a
// destination does, too: neither holds doctor up.
func TestWhatNeverAnswersIsGivenUp(t *testing.T) {
	t.Parallel()
	hole, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer hole.Close()
	o := plain(t, hole.Addr().String())
	d := config.DefaultDestination()
	d.URL, d.Secret = "http://"+hole.Addr().String(), config.NewSecret([]byte("a secret that only the tests know"))
	for _, name := range []string{"a", "b", "c"} {
		o.Config.Destinations[name] = d
	}
	done := make(chan doctor.Report, 1)
	go func() { done <- doctor.Examine(t.Context(), o) }()
	select {
	case r := <-done:
		if c := check(t, r, "address"); c.Status != doctor.Failing {
			t.Errorf("got %+v, want failing", c)
		}
		if c := check(t, r, "b"); c.Status != doctor.Warning {
			t.Errorf("got %+v, want a warning", c)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it hangs")
	}
}

func TestAnAddressOfElsewhereIsNotAsked(t *testing.T) {
	t.Parallel()
	r := doctor.Examine(t.Context(), plain(t, "192.0.2.1:8420")) // of no machine: RFC 5737
	if c := check(t, r, "address"); c.Status != doctor.Failing {
		t.Errorf("got %+v, want failing", c)
	}
	r = doctor.Examine(t.Context(), plain(t, "127.0.0.1:0"))
	if c := check(t, r, "address"); c.Status != doctor.Skipped {
		t.Errorf("got %+v, want skipped", c)
	}
}

func TestTheMeasuredFileIsGone(t *testing.T) {
	t.Parallel()
	o := plain(t, "127.0.0.1:0")
	f := doctor.Measure(t.Context(), o)
	if f.Sync.Count < 3 || f.Sync.Median <= 0 || f.Sync.P99 < f.Sync.Median || f.Folder.Write != nil {
		t.Errorf("got %+v, %v; want a measurement", f.Sync, f.Folder.Write)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if f := doctor.Measure(ended, o); f.Sync.Skipped == "" {
		t.Errorf("got %+v of a context that has ended, want none", f.Sync)
	}
	if left, err := os.ReadDir(o.Config.Data); err != nil || len(left) > 0 {
		t.Errorf("got %v, %v; want nothing left", left, err)
	}
}

func TestBackupsAndFilesSetAsideAreFound(t *testing.T) {
	t.Parallel()
	o := plain(t, "127.0.0.1:0")
	dir := filepath.Join(o.Config.Data, "backups")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-30 * time.Hour)
	for name, text := range map[string]string{"backups/a.db": "x", "backups/.b.db.part": "x", "backups/c.db": "", "holdfast.db.damaged-1": "x"} {
		path := filepath.Join(o.Config.Data, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if name == "backups/a.db" {
			if err := os.Chtimes(path, old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	r := doctor.Examine(t.Context(), o)
	if c := check(t, r, "backups"); c.Status != doctor.Warning || c.Values["ageSeconds"] < 29*3600 {
		t.Errorf("got %+v, want the one whole backup, 30 h old", c)
	}
	if c := check(t, r, "files set aside"); c.Status != doctor.Failing {
		t.Errorf("got %+v, want failing", c)
	}
}
