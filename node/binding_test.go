package node_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/node"
)

// F1-04: whoever may write channels cannot have a secret sent to a host of his
// own: it goes where the configuration binds it, or where the seed uses it.
func TestASecretGoesOnlyWhereItIsBound(t *testing.T) {
	t.Parallel()
	var got atomic.Value
	push := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got.Store(r.Header.Get("Authorization"))
		_, _ = io.WriteString(w, `{"id":"x"}`)
	}))
	t.Cleanup(push.Close)
	c := newCentral(t, "")
	folder := t.TempDir()
	for name, text := range map[string]string{"bound": "hunter2", "seeded": "hunter3", "loose": "hunter4", "place": push.URL, "room": "https://room.example/x"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.conf.Notifications.Secrets = folder
	c.conf.Notifications.Bindings = map[string]config.Binding{
		"bound": {Kinds: []string{"ntfy"}, Hosts: []string{"127.0.0.1"}},
		"room":  {Kinds: []string{"slack"}},
	}
	seed := `
channels:
  seeded: {kind: gotify, settings: {url: "https://push.example", token: {secret: seeded}}}
lists: {ops: {recipients: [{channel: mine}]}}
`
	ntfy := func(url, secret string) string {
		return fmt.Sprintf(`{"kind":"ntfy","settings":{"url":%s,"topic":"ops","token":{"secret":%q}}}`, url, secret)
	}
	if err := c.run(t, seed, func(url string) {
		put := func(what, body string, want int, parts ...string) {
			t.Helper()
			status, answer := ask(t, "PUT", url+"/v1/channels/mine", body)
			for _, part := range parts {
				if !strings.Contains(answer, part) {
					t.Errorf("%s: %q is not in %s", what, part, answer)
				}
			}
			if status != want {
				t.Errorf("%s: got %d %s, want %d", what, status, answer, want)
			}
		}
		put("another host", ntfy(`"https://evil.example"`, "bound"), 422,
			`"field":"settings.token"`, `secret \"bound\" is not bound to channels of kind ntfy and to evil.example`, `notifications: {bindings: {bound: {kinds: [ntfy], hosts: [evil.example]}}}`)
		put("another kind", `{"kind":"gotify","settings":{"url":"http://127.0.0.1:1","token":{"secret":"bound"}}}`, 422, "of kind gotify and to 127.0.0.1")
		put("bound to nothing", ntfy(`"http://127.0.0.1:1"`, "loose"), 422, `secret \"loose\" is not bound`)
		put("by mail", `{"kind":"email","settings":{"host":"mail.evil.example","port":25,"tls":"implicit","from":"a@example.com","auth":{"mechanism":"plain","user":"u","password":{"secret":"seeded"}}}}`, 422,
			`"field":"settings.auth.password"`, "of kind email and to mail.evil.example")
		put("as the seed, of another kind", ntfy(`"https://push.example"`, "seeded"), 422)
		put("as the seed, elsewhere", `{"kind":"gotify","settings":{"url":"https://evil.example","token":{"secret":"seeded"}}}`, 422)
		put("as the seed", `{"kind":"gotify","settings":{"url":"https://push.example/x","token":{"secret":"seeded"}}}`, 200)
		put("a URL of another kind", `{"kind":"teams","settings":{"url":{"secret":"room"}}}`, 422)
		put("a URL of its kind", `{"kind":"slack","settings":{"url":{"secret":"room"}}}`, 200)
		put("where a secret says", ntfy(`{"secret":"place"}`, "bound"), 200)
		waittest.Until(t, "the channel is served", func() bool {
			_, answer := ask(t, "GET", url+"/v1/channels/mine", "")
			return strings.Contains(answer, `"state":"ok"`)
		})
		send(t, url)
		waittest.Until(t, "it is delivered with the secret", func() bool { return got.Load() == "Bearer hunter2" })
	}); err != nil {
		t.Fatal(err)
	}

	// A URL that another may write leads elsewhere: it is seen when it is read.
	c.conf.Notifications.Bindings["bound"] = config.Binding{Kinds: []string{"ntfy"}, Hosts: []string{"push.example"}}
	got.Store("")
	if err := c.run(t, seed, func(url string) { held(t, url, "127.0.0.1") }); err != nil {
		t.Fatal(err)
	}
	// The configuration has narrowed what is stored.
	c.conf.Notifications.Bindings["bound"] = config.Binding{Kinds: []string{"webhook"}, Hosts: []string{"127.0.0.1"}}
	if err := c.run(t, seed, func(url string) { held(t, url, "HOST") }); err != nil {
		t.Fatal(err)
	}
	if got.Load() != "" {
		t.Errorf("it was sent %v", got.Load())
	}

	if log := c.log.String(); !strings.Contains(log, `level=WARN msg="the settings of a channel do not work" channel=mine`) {
		t.Errorf("the start does not tell:\n%s", log)
	}

	// A seed does not stand over a binding.
	c.conf.Notifications.Bindings["seeded"] = config.Binding{Kinds: []string{"gotify"}, Hosts: []string{"other.example"}}
	for name, err := range map[string]error{"a check": node.Preflight(c.conf), "a start": c.run(t, seed, func(string) {})} {
		if err == nil || !strings.Contains(err.Error(), "channels.seeded.settings.token") || !strings.Contains(err.Error(), "is not bound") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func send(t *testing.T, url string) {
	t.Helper()
	if status, answer := ask(t, "POST", url+"/v1/notifications", `{"list":"ops","subject":"Tank 4 is full"}`); status/100 != 2 {
		t.Fatalf("got %d %s", status, answer)
	}
}

// held sends a notification, and waits until its channel is held for the secret.
func held(t *testing.T, url, host string) {
	t.Helper()
	if status, answer := ask(t, "POST", url+"/v1/channels/mine/resume", ""); status/100 != 2 {
		t.Fatalf("got %d %s", status, answer)
	}
	send(t, url)
	waittest.Until(t, "the channel is held with the reason", func() bool {
		_, answer := ask(t, "GET", url+"/v1/channels/mine", "")
		return strings.Contains(answer, `"state":"held"`) && strings.Contains(answer, `secret \"bound\" is not bound to channels of kind ntfy and to `+host)
	})
}
