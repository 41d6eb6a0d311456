package node_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/keyring"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/internal/standardwebhooks"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/node"
)

const (
	givenSigning = "whsec_c2lnbmluZy1zZWNyZXQtb2YtdGhlLXRlc3Q="
	givenURL     = "/hooks/T024-a-url-that-is-a-secret"
)

// hook is a receiver that verifies with one secret.
type hook struct {
	*httptest.Server
	verified atomic.Int64
	forged   atomic.Int64
}

func newHook(t *testing.T) *hook {
	t.Helper()
	v, err := standardwebhooks.NewVerifier(givenSigning)
	if err != nil {
		t.Fatal(err)
	}
	h := &hook{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if _, err := standardwebhooks.Verify(r.Header, body, time.Now(), time.Minute, v); err != nil || r.URL.Path != givenURL {
			h.forged.Add(1)
			return
		}
		h.verified.Add(1)
	}))
	t.Cleanup(h.Close)
	return h
}

func withKeys(t *testing.T, c config.Config, newest byte, former ...byte) *config.Config {
	t.Helper()
	key := func(b byte) config.Secret { return config.NewSecret(bytes.Repeat([]byte{b}, keyring.KeySize)) }
	c.Secrets = config.Keyring{}
	if newest != 0 {
		c.Secrets.Key = key(newest)
	}
	for _, b := range former {
		c.Secrets.Former = append(c.Secrets.Former, key(b))
	}
	return &c
}

func keyID(b byte) string { return keyring.ID(bytes.Repeat([]byte{b}, keyring.KeySize)) }

// put makes or changes the channel, and returns what it is shown as.
func putChannel(t *testing.T, url, settings string, want int, parts ...string) string {
	t.Helper()
	status, answer := ask(t, "PUT", url+"/v1/channels/hook", `{"kind":"webhook","settings":`+settings+`}`)
	for _, part := range parts {
		if !strings.Contains(answer, part) {
			t.Errorf("%q is not in %s", part, answer)
		}
	}
	if status != want {
		t.Fatalf("%s: got %d %s, want %d", settings, status, answer, want)
	}
	var shown struct {
		Settings json.RawMessage `json:"settings"`
	}
	if err := json.Unmarshal([]byte(answer), &shown); err != nil {
		t.Fatal(err)
	}
	return string(shown.Settings)
}

// delivered sends a notification and waits until the receiver has verified it.
func (h *hook) delivered(t *testing.T, url string) {
	t.Helper()
	before := h.verified.Load()
	send(t, url)
	waittest.Until(t, "it is delivered and verified", func() bool { return h.verified.Load() > before })
	if n := h.forged.Load(); n > 0 {
		t.Fatalf("%d requests did not verify", n)
	}
}

func keysOf(t *testing.T, url string) (list api.KeyList) {
	t.Helper()
	if _, answer := ask(t, "GET", url+"/v1/keys", ""); json.Unmarshal([]byte(answer), &list) != nil {
		t.Fatalf("got %s", answer)
	}
	return list
}

// A secret that comes by the API signs, stands sealed in the database and is never shown. The key is
// changed while the node runs.
func TestASecretComesByTheAPI(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]func(t *testing.T, c *config.Config){
		"file": func(*testing.T, *config.Config) {},
		"database": func(t *testing.T, c *config.Config) {
			t.Helper()
			var err error
			if c.Store, err = config.NewDatabase(pgtest.Shared(t).Database(t)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := parse(t, "")
			at(t, c)
			h, reload, log := newHook(t), make(chan *config.Config), &lockedBuffer{}
			url := serveWith(t, withKeys(t, *c, 1), node.Options{Reload: reload, Log: log, Out: log})
			shown := putChannel(t, url, fmt.Sprintf(`{"url":{"secret":{"value":%q}},"signing":[{"secret":{"value":%q}}]}`, h.URL+givenURL, givenSigning), 200)
			if status, answer := ask(t, "PUT", url+"/v1/lists/ops", `{"recipients":[{"channel":"hook"}]}`); status != 200 {
				t.Fatalf("got %d %s", status, answer)
			}
			h.delivered(t, url)
			putChannel(t, url, shown, 200) // as it was shown
			h.delivered(t, url)

			reload <- withKeys(t, *c, 2, 1)
			waittest.Until(t, "the node has the new key", func() bool { return keysOf(t, url).Keys[0].ID == keyID(2) })
			h.delivered(t, url)
			if _, answer := ask(t, "POST", url+"/v1/keys/rotate", ""); !strings.Contains(answer, `"resealed":2,"next":"channel/hook"`) {
				t.Errorf("rotate: got %s", answer)
			}
			if _, answer := ask(t, "POST", url+"/v1/keys/rotate?after=channel/hook", ""); answer != "{\"looked\":0,\"resealed\":0}\n" {
				t.Errorf("rotate on: got %s", answer)
			}
			reload <- withKeys(t, *c, 2)
			waittest.Until(t, "the former key is away", func() bool { return len(keysOf(t, url).Keys) == 1 })
			if list := keysOf(t, url); list.Broken != 0 || list.Keys[0].Values != 2 {
				t.Errorf("got %+v", list)
			}
			h.delivered(t, url)
			nowhere(t, c, map[string]string{"log": log.String(), "answer": shown})
		})
	}
}

// nowhere looks for the secrets of the test in files and texts.
func nowhere(t *testing.T, c *config.Config, said map[string]string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(c.Data, "*"))
	if err != nil || c.Store.IsZero() && len(files) == 0 {
		t.Fatalf("files %v, %v", files, err)
	}
	for _, name := range files {
		if text, err := os.ReadFile(name); err == nil {
			said[filepath.Base(name)] = string(text)
		}
	}
	for what, text := range said {
		for _, secret := range []string{givenSigning[6:], givenURL[1:], "signing-secret-of-the-test"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s holds %s", what, secret)
			}
		}
	}
	if !strings.Contains(said["answer"], `{"secret":{"sealed":"`+keyID(1)+`.`) {
		t.Errorf("shown as %s", said["answer"])
	}
}

// F1-04: whoever may write channels cannot have a sealed secret sent to a host of their own.
func TestASealedSecretStaysWithItsChannelAndHosts(t *testing.T) {
	t.Parallel()
	url := serve(t, withKeys(t, *parse(t, ""), 1))
	shown := putChannel(t, url, `{"url":"https://erp.example/x","signing":[{"secret":{"value":"`+givenSigning+`"}}]}`, 200)
	_, sign, _ := strings.Cut(shown, `"signing":`)
	sign = strings.TrimSuffix(sign, "}")
	for what, settings := range map[string]string{
		"another host":               `{"url":"https://evil.example/x","signing":` + sign + `}`,
		"a host in a secret URL":     `{"url":{"secret":{"value":"https://evil.example/x"}},"signing":` + sign + `}`,
		"a further target":           `{"url":"https://erp.example/x","signing":` + sign + `,"targets":{"b":{"url":"https://evil.example"}}}`,
		"only as that of the target": `{"targets":{"b":{"url":"https://evil.example","signing":` + sign + `}}}`,
	} {
		putChannel(t, url, settings, 422, "was sealed for other hosts", `"field":"settings.`)
		if what == "another host" {
			putChannel(t, url, `{"url":"https://ERP.example/y","signing":`+sign+`}`, 200) // the same host
		}
	}
	for what, body := range map[string]string{
		"another channel": `{"kind":"webhook","settings":{"url":"https://erp.example/x","signing":` + sign + `}}`,
		"another kind":    `{"kind":"gotify","settings":{"url":"https://erp.example/x","token":` + strings.Trim(sign, "[]") + `}}`,
	} {
		name := map[bool]string{true: "other", false: "hook"}[what == "another channel"]
		if status, answer := ask(t, "PUT", url+"/v1/channels/"+name, body); status != 422 || !strings.Contains(answer, `{\"secret\": {\"value\": \"…\"}}`) {
			t.Errorf("%s: got %d %s", what, status, answer)
		}
	}
}

func TestASecretIsRefusedWithoutAKeyAndInASeed(t *testing.T) {
	t.Parallel()
	c := newCentral(t, "")
	seed := "channels: {hook: {kind: webhook, settings: {url: https://erp.example, signing: [{secret: {value: " + givenSigning + "}}]}}}\n"
	if err := c.run(t, seed, func(string) {}); err == nil || !strings.Contains(err.Error(), "channels.hook.settings.signing[0]") ||
		!strings.Contains(err.Error(), "which only the API takes") || strings.Contains(err.Error(), givenSigning[6:]) {
		t.Errorf("seed: got %v", err)
	}
	url := serve(t, withKeys(t, *parse(t, ""), 0, 1))
	putChannel(t, url, `{"url":"https://erp.example/x","signing":[{"secret":{"value":"`+givenSigning+`"}}]}`, 422,
		`"field":"settings.signing[0]"`, "holdfast keys create FILE")
	for _, bad := range []string{" ", "two\nlines", strings.Repeat("x", 9<<10)} {
		text, _ := json.Marshal(bad)
		putChannel(t, url, `{"url":"https://erp.example/x","signing":[{"secret":{"value":`+string(text)+`}}]}`, 422, `"field":"settings.signing[0]"`)
	}
	if status, answer := ask(t, "POST", url+"/v1/keys/rotate", ""); status != 409 || !strings.Contains(answer, "holdfast keys create FILE") {
		t.Errorf("rotate: got %d %s", status, answer)
	}
}

// Case 50: with a wrong key the node works, lists are shown, and the channel is held with the id of
// the key that it needs.
func TestAWrongKeyIsNamedAndListsStillWork(t *testing.T) {
	t.Parallel()
	c := newCentral(t, "")
	c.conf.Secrets = withKeys(t, *c.conf, 1).Secrets
	h := newHook(t)
	if err := c.run(t, "lists: {ops: {recipients: [{channel: hook}]}}\n", func(url string) {
		putChannel(t, url, fmt.Sprintf(`{"url":%q,"signing":[{"secret":{"value":%q}}]}`, h.URL+givenURL, givenSigning), 200)
		h.delivered(t, url)
	}); err != nil {
		t.Fatal(err)
	}
	c.conf.Secrets = withKeys(t, *c.conf, 2).Secrets
	if err := c.run(t, "", func(url string) {
		send(t, url)
		waittest.Until(t, "the channel is held for the key", func() bool {
			_, answer := ask(t, "GET", url+"/v1/channels", "")
			return strings.Contains(answer, `"state":"held"`) && strings.Contains(answer, "sealed with key "+keyID(1))
		})
		list := keysOf(t, url)
		if len(list.Keys) != 2 || list.Keys[1] != (api.Key{ID: keyID(1), State: "missing", Values: 1}) || list.Broken != 1 || list.Problems[0].Where != "channel/hook" {
			t.Errorf("got %+v", list)
		}
		if _, answer := ask(t, "POST", url+"/v1/keys/rotate", ""); !strings.Contains(answer, `"resealed":0`) || !strings.Contains(answer, "secrets.former") {
			t.Errorf("rotate: got %s", answer)
		}
	}); err != nil {
		t.Fatal(err)
	}
}
