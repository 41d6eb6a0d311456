package node_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/node"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m, pgtest.Options{Beside: true})) }

// central is a node with a seed, that starts again and again on what it keeps.
type central struct {
	conf *config.Config
	seed string
	log  lines
}

func newCentral(t *testing.T, more string) *central {
	t.Helper()
	c := &central{conf: parse(t, "role: central\n"+more)}
	c.seed = filepath.Join(t.TempDir(), "seed.yaml")
	c.conf.Notifications.Seed = c.seed
	return c
}

// run starts it with a seed, and ends it after do.
func (c *central) run(t *testing.T, seed string, do func(url string)) error {
	t.Helper()
	if err := os.WriteFile(c.seed, []byte(seed), 0o600); err != nil {
		t.Fatal(err)
	}
	conf := *c.conf
	ready, ended := make(chan string, 1), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		ended <- node.Serve(ctx, &conf, node.Options{Log: &c.log, Ready: func(a string) { ready <- a }})
	}()
	select {
	case a := <-ready:
		do("http://" + a)
		cancel()
		return <-ended
	case err := <-ended:
		return err
	}
}

// ask makes a request and returns what came.
func ask(t *testing.T, method, url, body string) (status int, answer string) {
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
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

const (
	seeded = `
channels:
  mail: {kind: email, settings: {host: 127.0.0.1, port: 1, tls: none, from: a@example.com}, retry: {attempts: 0, interval: 0s}}
  room: {kind: ntfy, settings: {url: "https://ntfy.example"}}
lists:
  ops: {recipients: [{channel: mail, address: a@example.com}, {channel: room, address: press}]}
`
	another = seeded + `
  new: {recipients: [{channel: mail, address: a@example.com}, {channel: gone, address: x}]}
`
)

// What people have changed is left as it is, and does not stop a start, even
// where the seed does not fit it any more. A new list that does not fit is made,
// and told until it is mended.
func TestASeedIsNotHeldAgainstWhatPeopleHaveChanged(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]func(t *testing.T) string{
		"file":     func(*testing.T) string { return "" },
		"database": func(t *testing.T) string { t.Helper(); return fmt.Sprintf("store: %q\n", pgtest.Shared(t).Database(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCentral(t, more(t))
			want := func(url, path, part string) {
				t.Helper()
				if status, answer := ask(t, "GET", url+path, ""); status != 200 || !strings.Contains(answer, part) {
					t.Errorf("%s: got %d %s, want %s", path, status, answer, part)
				}
			}
			if err := c.run(t, seeded, func(url string) {
				want(url, "/v1/channels/mail", `"retry":{"attempts":10,"interval":"1m"}`)
				for _, change := range [][3]string{
					{"PUT", "/v1/channels/mail", `{"kind":"ntfy","settings":{"url":"https://other.example"}}`}, // whose topics have no @
					{"DELETE", "/v1/channels/room?force=true", ""},
				} {
					if status, answer := ask(t, change[0], url+change[1], change[2]); status/100 != 2 {
						t.Errorf("%s: got %d %s", change[1], status, answer)
					}
				}
			}); err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(c.log.String(), `level=WARN msg="seed: a setting is not above zero`); n != 2 { // NO-21
				t.Errorf("%d warnings of settings that are not above zero, want one of each", n)
			}
			if err := c.run(t, seeded, func(url string) {
				want(url, "/v1/channels/mail", `"kind":"ntfy"`)
				want(url, "/v1/channels/room", `"kind":"ntfy"`) // it did not exist any more
			}); err != nil {
				t.Fatalf("the second start: %v", err)
			}
			if err := c.run(t, another, func(url string) {
				want(url, "/v1/lists/new", `"gone"`)
				health := ""
				waittest.Until(t, "health tells of the list that does not fit", func() bool {
					_, health = ask(t, "GET", url+"/_rf/health", "")
					return strings.Contains(health, `lists.new.recipients[1]: there is no channel`)
				})
				if !strings.Contains(health, "lists.new.recipients[0]") {
					t.Errorf("health does not tell of the list that does not fit: %s", health)
				}
				ask(t, "PUT", url+"/v1/lists/new", `{"recipients":[]}`)
				waittest.Until(t, "health tells no more of what was mended", func() bool {
					_, health = ask(t, "GET", url+"/_rf/health", "")
					return !strings.Contains(health, "lists.new")
				})
			}); err != nil {
				t.Fatalf("the third start: %v", err)
			}
			if log := c.log.String(); strings.Count(log, "not above zero") != 2 || !strings.Contains(log, "the seed has made a list that does not fit") {
				t.Errorf("the log of all starts:\n%s", log)
			}
		})
	}
}

// A seed that is wrong as it is written is refused, with all that is wrong.
func TestASeedThatIsWrongByItselfStopsTheStart(t *testing.T) {
	t.Parallel()
	c := newCentral(t, "")
	err := c.run(t, `
channels:
  mail: {kind: email, settings: {host: 127.0.0.1, from: a@example.com, tls: none}}
  fax: {kind: fax}
lists:
  ops: {recipients: [{channel: mail, address: nobody}]}
`, func(string) { t.Error("it started") })
	if err == nil {
		return
	}
	for _, want := range []string{"seed.yaml:4: channels.fax.kind", "seed.yaml:6: lists.ops.recipients[0].address"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in: %v", want, err)
		}
	}
}
