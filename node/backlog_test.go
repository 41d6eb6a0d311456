package node_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/doctor"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/node"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// backlogs are what a node of a configuration may find in its store at a start:
// for each name that it serves, whether or not it names it.
func backlogs(t *testing.T) map[string]struct {
	conf  string
	waits []string
} {
	t.Helper()
	dsn := filepath.Join(t.TempDir(), "dsn")
	if err := os.WriteFile(dsn, []byte(dsn+".db"), 0o600); err != nil {
		t.Fatal(err)
	}
	nowhere := fmt.Sprintf(`destinations:
  peer: {url: "http://127.0.0.1:1", secret: {env: SECRET}}
  call: {call: {url: "http://127.0.0.1:1"}}
  write: {write: {driver: sqlite, dsn: {file: %q}, raw: true}}
`, dsn)
	named := []string{"call", "peer", "write"}
	channels := []string{notify.Lane(""), notify.Lane("deleted"), notify.Lane("mail"), notify.Lane("off")}
	return map[string]struct {
		conf  string
		waits []string
	}{
		"site": {nowhere + `role: site
central: {url: "http://127.0.0.1:1"}
`, append([]string{"central"}, named...)},
		"central":    {nowhere + "role: central\n", append(named, channels...)},
		"standalone": {nowhere, append(named, channels...)},
		"none":       {"", append([]string{"self"}, channels...)},
	}
}

// fill puts messages into a store that no node has.
func fill(t *testing.T, c *config.Config, destinations []string) {
	t.Helper()
	db := open(t, c.Data)
	defer db.Close()
	for _, to := range destinations {
		if _, err := db.Enqueue(t.Context(), holdfast.Message{Destination: to, Endpoint: "Book", Payload: []byte(`{}`)}); err != nil {
			t.Fatal(err)
		}
	}
	noticed(t, db)
	if c.Role == config.Site {
		return
	}
	const settings = `{"host":"127.0.0.1","port":1,"tls":"none","from":"a@example.com"}`
	for _, channel := range []notify.Channel{
		{Name: "mail", Kind: "email", Settings: []byte(settings)},
		{Name: "off", Kind: "email", Settings: []byte(settings), Disabled: true},
	} {
		if err := nodestore.New(db, nil).Directory.PutChannel(t.Context(), channel, ""); err != nil {
			t.Fatal(err)
		}
	}
}

// noticed leaves a notice for a program that asked to be told of what is parked,
// and had the store before.
func noticed(t *testing.T, db *sqlite.DB) {
	t.Helper()
	if _, err := db.NotifyEnded(t.Context(), true, false); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Enqueue(t.Context(), holdfast.Message{ID: "parked", Destination: "shop", Endpoint: "Book"}); err != nil {
		t.Fatal(err)
	}
	b, err := db.Claim(t.Context(), map[string]int{"shop": 1})
	if err != nil || len(b.Claims) != 1 {
		t.Fatalf("got %d claims, %v", len(b.Claims), err)
	}
	s := holdfast.Settlement{Seq: b.Claims[0].Seq, Token: b.Claims[0].Token, State: holdfast.Parked, Reason: holdfast.ReasonPermanent, Outcome: holdfast.Permanent}
	if _, err := db.Settle(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if n := db.Counts().Lanes[holdfast.EndedDestination].Pending; n != 1 {
		t.Fatalf("%d notices wait, want 1", n)
	}
}

// unadvised wants that nobody is told of a destination that the configuration
// does not name, nor to give messages up.
func unadvised(t *testing.T, h *api.Health, log string) {
	t.Helper()
	for _, c := range h.Checks {
		if c.Name == "destinations" || strings.Contains(c.Detail, "discard") || strings.Contains(c.Detail, "does not name") {
			t.Errorf("health: %+v", c)
		}
	}
	for _, text := range []string{string(holdfast.CauseNoRoute), "discard", "does not name"} {
		if strings.Contains(log, text) {
			t.Errorf("the log says %q:\n%s", text, log)
		}
	}
}

// examined wants the same of doctor.
func examined(t *testing.T, c *config.Config) {
	t.Helper()
	r := doctor.Examine(t.Context(), doctor.Options{Config: c})
	found := false
	for _, check := range r.Checks {
		if check.Name == "without a destination" {
			found = true
			if check.Status != doctor.OK {
				t.Errorf("doctor: %+v", check)
			}
		}
		if strings.Contains(check.Hint, "discard") && check.Name != "parked" {
			t.Errorf("doctor: %+v", check)
		}
	}
	if !found {
		t.Errorf("doctor did not look at what waits: %s", r.String())
	}
}

// F1-36: a node that starts with messages for what it is configured for, or knows
// without, never says that nobody delivers them, nor to discard them: not before
// its lanes stand, not while it runs, and not when it is gone.
func TestABacklogForWhatIsConfiguredIsNoReasonToDiscard(t *testing.T) {
	t.Parallel()
	for name, is := range backlogs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := parse(t, is.conf)
			fill(t, c, is.waits)
			examined(t, c)
			beforeItRuns(t, c, is.waits)
			whileItRuns(t, c, is.waits)
			examined(t, c)
		})
	}
}

func beforeItRuns(t *testing.T, c *config.Config, waits []string) {
	t.Helper()
	var log lockedBuffer
	n, err := node.Build(t.Context(), c, &log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	looked := make(chan error, 1)
	go func() { looked <- n.Look(ctx) }()
	waittest.Until(t, "it has looked", func() bool { return n.Looked() != nil })
	cancel()
	if err := <-looked; err != nil {
		t.Error(err)
	}
	for _, to := range waits {
		if _, seen := n.Looked()[to]; !seen {
			t.Errorf("%s was not seen to wait, but %v", to, slices.Sorted(maps.Keys(n.Looked())))
		}
	}
	h := n.Health()
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	unadvised(t, &h, log.String())
}

func whileItRuns(t *testing.T, c *config.Config, waits []string) {
	t.Helper()
	var log lockedBuffer
	ready, ended := make(chan string, 1), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { ended <- node.Serve(ctx, c, node.Options{Log: &log, Ready: func(a string) { ready <- a }}) }()
	select {
	case url := <-ready:
		looked := fmt.Sprintf("holdfast_oldest_due_seconds{destination=%q", waits[0])
		waittest.Until(t, "it has looked", func() bool {
			_, metrics := ask(t, "GET", "http://"+url+"/metrics", "")
			return strings.Contains(metrics, looked)
		})
		h := health(t, "http://"+url)
		unadvised(t, &h, log.String())
		cancel()
	case err := <-ended:
		ended <- err
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	unadvised(t, &api.Health{}, log.String())
}
