package node_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/node"
	"github.com/holdfast-mq/holdfast/transport"
)

// F1-38: a reload makes what the seed has more, and takes over who may send;
// what is wrong with the seed changes nothing.
func TestAReloadTakesOverSeedAndSources(t *testing.T) {
	t.Parallel()
	seed := filepath.Join(t.TempDir(), "seed.yaml")
	sow := func(text string) {
		t.Helper()
		if err := os.WriteFile(seed, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	configured := func(sources string) *config.Config {
		c := parse(t, "role: central\nreceive: {secrets: {"+sources+"}, endpoints: {E: {keep: true}}}\n")
		c.Notifications.Seed = seed
		return c
	}
	sow(seeded)
	reload, log := make(chan *config.Config), &lines{}
	url := serveWith(t, configured("office: {env: SECRET}"), node.Options{Reload: reload, Log: log})
	shop := sender(t, transport.ClientConfig{URL: url})
	defer shop.Close()
	m := holdfast.Message{ID: holdfast.NewID(), Endpoint: "E", Payload: []byte("1")}
	if _, err := shop.Deliver(t.Context(), m); holdfast.AsFailure(err) == nil || holdfast.AsFailure(err).Code != transport.CodeSignature {
		t.Fatalf("a source that is not known: %v", err)
	}
	lists := func(name string) int {
		status, _ := ask(t, "GET", url+"/v1/lists/"+name, "")
		return status
	}
	if lists("new") != http.StatusNotFound {
		t.Fatal("the list is there already")
	}

	sow(another)
	reload <- configured("office: {env: SECRET}, shop: {env: SECRET}")
	waittest.Until(t, "the list is made", func() bool { return lists("new") == http.StatusOK })
	waittest.Until(t, "the source may send", func() bool { _, err := shop.Deliver(t.Context(), m); return err == nil })

	sow("lists: {ops: {recipients: [{channel: mail, address: nobody}]}, more: {recipients: 7}}")
	reload <- configured("office: {env: SECRET}")
	waittest.Until(t, "the source may send no more", func() bool { _, err := shop.Deliver(t.Context(), m); return err != nil })
	waittest.Until(t, "the seed is refused", func() bool {
		return strings.Contains(log.String(), `msg="not reloaded" setting=notifications.seed`)
	})
	if lists("more") != http.StatusNotFound || lists("new") != http.StatusOK {
		t.Error("a seed with faults has changed something")
	}
}

// F1-38: a reload takes over the secrets of destinations: the next message goes out
// with the new ones.
func TestAReloadTakesOverSecretsOfDestinations(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	signing, token := filepath.Join(dir, "signing"), filepath.Join(dir, "token")
	set := func(key, bearer string) {
		t.Helper()
		for path, text := range map[string]string{signing: base64.StdEncoding.EncodeToString([]byte(key)), token: bearer} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	var wanted atomic.Value
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+wanted.Load().(string) {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer target.Close()
	set(key, "first")
	wanted.Store("first")
	peer := func() *config.Config {
		return parse(t, fmt.Sprintf("receive: {secrets: {here: {file: %q}}, endpoints: {E: {keep: true}}}", signing))
	}
	reloadPeer, peerLog := make(chan *config.Config), &lines{}
	peerURL := serveWith(t, peer(), node.Options{Reload: reloadPeer, Log: peerLog})
	sender := func(token string) *config.Config {
		return parse(t, fmt.Sprintf(`destinations:
  peer: {url: %q, secret: {file: %q}}
  api: {call: {url: %q, auth: {bearer: {file: %q}}}}
`, peerURL, signing, target.URL, token))
	}
	reload, log := make(chan *config.Config), &lines{}
	url := serveWith(t, sender(token), node.Options{Reload: reload, Log: log})
	arrive := func(when string) {
		t.Helper()
		for _, to := range []string{"peer", "api"} {
			if status, answer := post(t, url, fmt.Sprintf(`{"destination": %q, "endpoint": "E", "payload": 1, "wait": "1m"}`, to)); status != http.StatusOK {
				t.Errorf("%s: a message for %s: got %d %+v\n%s", when, to, status, answer, log)
			}
		}
	}
	arrive("before")

	set(strings.ToUpper(key), "second")
	wanted.Store("second")
	reloadPeer <- peer()
	waittest.Until(t, "the peer takes the new secret alone", func() bool { return strings.Contains(peerLog.String(), "msg=reloaded setting=receive.secrets") })
	reload <- sender(token)
	for _, to := range []string{"peer", "api"} {
		line := fmt.Sprintf(`msg=reloaded setting="destinations.%s secret"`, to)
		waittest.Until(t, line, func() bool { return strings.Contains(log.String(), line) })
	}
	waittest.Until(t, "the reload has ended", func() bool { return strings.Contains(log.String(), "reload ended") })
	arrive("after")

	moved := token + ".moved"
	if err := os.WriteFile(moved, []byte("third"), 0o600); err != nil {
		t.Fatal(err)
	}
	wanted.Store("third")
	reload <- sender(moved)
	waittest.Until(t, "the second reload has ended", func() bool { return strings.Count(log.String(), "reload ended") == 2 })
	arrive("with a secret that stands in another file")
	if strings.Contains(log.String(), `not reloaded: it needs a restart" setting="destinations`) {
		t.Errorf("it is said to need a restart all the same:\n%s", log)
	}
}
