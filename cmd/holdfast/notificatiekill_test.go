package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// 46: a node that is killed while a subscriber has a notification in hand sends it again after its restart, with the
// same body and the same webhook-id.
func TestKillWhileANotificationIsDelivered(t *testing.T) {
	var mu sync.Mutex
	var got []string
	hung := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		got = append(got, r.Header.Get("Webhook-Id")+" "+string(body))
		first := len(got) == 1
		mu.Unlock()
		if first {
			close(hung)
			<-r.Context().Done() // the node is killed
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	dir := t.TempDir()
	key := []byte("0123456789abcdef0123456789abcdef")
	write(t, filepath.Join(dir, "key"), base64.StdEncoding.EncodeToString(key))
	write(t, filepath.Join(dir, "secret"), "letmein")
	node := &child{t: t, address: freeAddress(t), data: filepath.Join(dir, "node")}
	node.args = serveArgs(t, dir, "node", fmt.Sprintf(`
node: {id: node}
listen: %s
data: %s
log: {level: error}
webhooks: {addresses: [127.0.0.0/8], factor: 1s, base: 1}
secrets: {key: {file: %s}}
notificaties: {clients: {testsuite: {secret: {file: %s}, superuser: true}}}
`, node.address, node.data, filepath.Join(dir, "key"), filepath.Join(dir, "secret")))
	node.start()
	t.Cleanup(node.kill)
	node.ready()
	put(t, node.url()+"/v1/topics/zaken", `{}`)
	put(t, node.url()+"/v1/subscriptions/a", fmt.Sprintf(`{"topics": ["zaken"], "url": %q}`, server.URL))
	const body = `{"kanaal":"zaken","hoofdObject":"https://z.example.nl/1","resource":"status","resourceUrl":"https://z.example.nl/2","actie":"create","aanmaakdatum":"2025-01-01T12:00:00Z","kenmerken":{"bron":"1"}}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, node.url()+"/api/v1/notificaties", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(`{"alg":"HS256"}`)) + "." + encode(fmt.Appendf(nil, `{"client_id":"testsuite","iat":%d}`, time.Now().Unix()))
	mac := hmac.New(sha256.New, []byte("letmein"))
	mac.Write([]byte(signed))
	req.Header.Set("Authorization", "Bearer "+signed+"."+encode(mac.Sum(nil)))
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusCreated || string(text) != body {
		t.Fatalf("%s: %s", resp.Status, text)
	}
	<-hung
	node.kill()
	node.start()
	eventuallyWithin(t, "it comes again", 2*time.Minute, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(got) == 2
	})
	if got[0] != got[1] || !strings.HasSuffix(got[0], " "+body) {
		t.Errorf("got %q", got)
	}
	node.ready()
	if err := node.end(); err != nil {
		t.Errorf("stop: %v", err)
	}
}
