package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/holdfast-mq/holdfast/cmd/holdfast/internal/demo"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// accounted holds the counts that a demo printed to what they must be.
func accounted(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: accounted")
	}
	var c demo.Counts
	text := ts.ReadFile("stdout")
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	ts.Check(d.Decode(&c))
	switch {
	case d.More():
		ts.Fatalf("got more than one object: %s", text)
	case c.Sent == 0 || c.Sent != c.Effects || c.Sent != c.Delivered || c.Lost != 0 || c.Waiting != 0 || c.Doubled != 0 || c.Foreign != 0:
		ts.Fatalf("got %s, want sent = delivered = effects, and nothing lost, waiting or doubled", text)
	case c.DuplicatesRefused == 0 || c.AcksLost == 0 || c.DuplicatesRefused < c.AcksLost || c.Kills < 3:
		ts.Fatalf("got %s, want at least a duplicate for each lost ack, and three kills", text)
	}
	for name, t := range map[string]demo.Tally{"notifications": c.Notifications, "mails": c.Mails, "calls": c.Calls, "writes": c.Writes} {
		if t.Sent == 0 || t.Delivered == 0 || t.Sent != t.Delivered+t.Refused || t.Lost != 0 || t.Waiting != 0 || t.Doubled != 0 || t.Foreign != 0 {
			ts.Fatalf("%s: got %+v, want sent = delivered + refused, and nothing lost, waiting or doubled", name, t)
		}
	}
	if c.Notifications.Refused == 0 || c.Calls.Refused == 0 || c.Calls.Duplicates == 0 {
		ts.Fatalf("got %s, want some that were refused, and some calls that came again", text)
	}
}

func TestADemoThatLosesAMessageFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]demo.Counts{
		"lost":    {Sent: 3, Delivered: 3, Effects: 2, Lost: 1},
		"doubled": {Sent: 3, Delivered: 3, Effects: 2, Doubled: 1},
		"a mail":  {Mails: demo.Tally{Sent: 3, Delivered: 2, Lost: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, _, stderr, _ := served(nil)
			a.demo = func(context.Context, demo.Options) (*demo.Counts, error) { return &c, c.Err() }
			var stdout bytes.Buffer
			a.stdout = &stdout
			if got := a.run(t.Context(), []string{"demo", "--json"}); got != exitFailure {
				t.Errorf("got exit code %d, want 1", got)
			}
			var printed demo.Counts
			if err := json.Unmarshal(stdout.Bytes(), &printed); err != nil || printed != c {
				t.Errorf("got %s, %v; want the counts", &stdout, err)
			}
			if want := "holdfast: 1 "; !strings.HasPrefix(stderr.String(), want) {
				t.Errorf("got %q, want it to begin with %q", stderr, want)
			}
		})
	}
}

// demoing starts a long demo and waits until its messages arrive.
func demoing(t *testing.T) *child {
	t.Helper()
	c := &child{t: t, data: filepath.Join(t.TempDir(), "files")}
	c.args = []string{"holdfast", "demo", "--seconds", "600", "--rate", "20", "--keep", c.data}
	c.start()
	t.Cleanup(c.kill)
	eventually(t, "messages arrive", func() bool {
		text, _ := os.ReadFile(filepath.Join(c.data, "ledger.jsonl"))
		return strings.Count(string(text), "\n") > 3
	})
	return c
}

func TestADemoThatIsInterruptedGivesItsAccount(t *testing.T) {
	t.Parallel()
	c := demoing(t)
	if err := c.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	err := c.cmd.Wait()
	c.cmd = nil
	if err != nil {
		t.Errorf("got %v, want exit code 0\n%s", err, c.tail())
	}
	for _, want := range []string{"each one arrived", "lost 0", "The files are in " + c.data} {
		if got := strings.Join(strings.Fields(c.tail()), " "); !strings.Contains(got, strings.Join(strings.Fields(want), " ")) {
			t.Errorf("it said\n%s\nwant it to hold %q", c.tail(), want)
		}
	}
	gone(t, c.data)
}

// The nodes end with the demo, also where it can do nothing about it any more.
func TestADemoThatIsKilledTakesItsNodesAlong(t *testing.T) {
	t.Parallel()
	c := demoing(t)
	if db, err := sqlite.Open(t.Context(), filepath.Join(c.data, "plant-1", "holdfast.db"), sqlite.Options{}); err == nil {
		db.Close()
		t.Fatal("the site's file is free while the site runs: this test cannot see whether a node is left")
	}
	if err := c.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = c.cmd.Wait()
	c.cmd = nil
	gone(t, c.data)
}

// gone waits until no process has the files of the demo's nodes.
func gone(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"central", "plant-1", "plant-2"} {
		eventually(t, "the "+name+" is gone", func() bool {
			db, err := sqlite.Open(t.Context(), filepath.Join(dir, name, "holdfast.db"), sqlite.Options{})
			if err != nil {
				return false
			}
			return db.Close() == nil
		})
	}
}

func TestANodeStopsWithItsStandardInput(t *testing.T) {
	t.Parallel()
	a, _, stderr, _ := served(func(ctx context.Context, _ ServeOptions) error {
		<-ctx.Done()
		return nil
	})
	if got := a.run(t.Context(), []string{"serve", "--stop-with-stdin"}); got != exitOK {
		t.Errorf("got exit code %d: %s", got, stderr)
	}
	if want := "holdfast: standard input has ended: stopping\n"; stderr.String() != want {
		t.Errorf("got %q, want %q", stderr, want)
	}
}
