package node_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
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
