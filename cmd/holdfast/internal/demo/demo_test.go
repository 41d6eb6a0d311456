package demo_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/cmd/holdfast/internal/demo"
)

// fake is the first argument of this test binary where it stands in for the
// program; the second one says how it lies.
const fake = "stand-in"

func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == fake {
		if err := standIn(os.Args[2], os.Args[3:]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// run runs a demo of stand-ins.
func run(t *testing.T, mode string) (c *demo.Counts, said, dir string, err error) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	dir = filepath.Join(t.TempDir(), "files")
	wait := 30 * time.Second
	if mode == "drop" || mode == "park" {
		wait = 500 * time.Millisecond // nothing will come
	}
	c, err = demo.Run(t.Context(), demo.Options{
		Program: []string{program, fake, mode}, Length: time.Second, Rate: 100, Keep: dir, Wait: wait, Out: &out,
	})
	return c, out.String(), dir, err
}

// A demo that cannot come out badly shows nothing.
func TestNodesThatLieAreFoundOut(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]string{
		"drop":   "accepted messages had no effect",                                 // sites that accept and deliver nothing
		"park":   "accepted calls were neither delivered nor refused with a reason", // sites that park what nobody refused
		"forget": "accepted messages had no effect",                                 // a central that acknowledges and does nothing
		"double": "messages took effect more than once",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			c, said, _, err := run(t, mode)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Fatalf("got error %v, want %q; it said:\n%s", err, want, said)
			}
			good := map[string]bool{
				"drop":   c.Lost == c.Sent && c.Calls.Lost == c.Calls.Sent && c.Writes.Lost == c.Writes.Sent && c.Notifications.Lost == c.Notifications.Sent && c.Mails.Lost == c.Mails.Sent,
				"park":   c.Lost == 0 && c.Calls.Lost == c.Calls.Sent,
				"forget": c.Lost == c.Sent && c.Calls.Lost == 0,
				"double": c.Doubled == c.Sent && c.Calls.Doubled > 0 && c.Writes.Doubled == c.Writes.Delivered && c.Mails.Doubled == c.Mails.Delivered,
			}
			if !good[mode] || c.Sent == 0 || c.Notifications.Sent == 0 || c.Calls.Sent == 0 || c.Writes.Sent == 0 {
				t.Errorf("got %+v", c)
			}
			if strings.Contains(said, "each one arrived") || !strings.Contains(said, "The files are in ") {
				t.Errorf("it said:\n%s", said)
			}
		})
	}
}

var effects = regexp.MustCompile(`"order":"[^"]+","repeat":false`)

func TestHonestStandInsPass(t *testing.T) {
	t.Parallel()
	c, said, dir, err := run(t, "honest")
	if err != nil || c.Sent == 0 || c.Sent != c.Effects || c.Lost != 0 || c.Kills != 3 || c.AcksLost == 0 || c.DuplicatesRefused == 0 || c.Calls.Refused == 0 {
		t.Fatalf("got %+v, %v; it said:\n%s", c, err, said)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "ledger.jsonl")); err != nil || len(effects.FindAllString(string(text), -1)) != c.Effects {
		t.Errorf("got a ledger with %d effects of orders, %v; want %d", len(effects.FindAllString(string(text), -1)), err, c.Effects)
	}
}

func TestANodeThatDiesIsReported(t *testing.T) {
	t.Parallel()
	_, said, _, err := run(t, "die")
	if err == nil || !strings.Contains(err.Error(), "central ended by itself, exit status 1\nno mood") {
		t.Errorf("got %v; it said:\n%s", err, said)
	}
}

func TestAFolderInUseIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := demo.Run(t.Context(), demo.Options{Keep: dir}); !errors.Is(err, demo.ErrFolder) || !strings.Contains(err.Error(), "mine") {
		t.Errorf("got %v, want ErrFolder with what is there", err)
	}
}
