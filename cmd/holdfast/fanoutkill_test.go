package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// subscribed keeps, for each subscriber, the webhook-ids under which each event came.
type subscribed struct {
	mu  sync.Mutex
	got map[string]map[string]bool
}

func (s *subscribed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the node was killed
	}
	key := r.URL.Path + " " + string(body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.got[key] == nil {
		s.got[key] = map[string]bool{}
	}
	s.got[key][r.Header.Get("Webhook-Id")] = true
	w.WriteHeader(http.StatusNoContent)
}

func (s *subscribed) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.got)
}

// TestKillBetweenEventAndAnswer kills a node with SIGKILL while events are published. No event that was
// answered is lost, no subscriber is skipped, and whoever gets one twice gets it under one webhook-id (WH-02, WH-06).
func TestKillBetweenEventAndAnswer(t *testing.T) {
	got := &subscribed{got: map[string]map[string]bool{}}
	server := httptest.NewServer(got)
	defer server.Close()
	dir := t.TempDir()
	node := &child{t: t, address: freeAddress(t), data: filepath.Join(dir, "node")}
	node.args = serveArgs(t, dir, "node", fmt.Sprintf(`
node: {id: node}
listen: %s
data: %s
log: {level: error}
webhooks: {addresses: [127.0.0.0/8], factor: 1s, base: 1}
`, node.address, node.data))
	node.start()
	t.Cleanup(node.kill)
	node.ready()
	put(t, node.url()+"/v1/topics/orders", `{}`)
	subscribers := []string{"/a", "/b", "/c"}
	for _, path := range subscribers {
		put(t, node.url()+"/v1/subscriptions"+path, fmt.Sprintf(`{"topics": ["orders"], "url": %q}`, server.URL+path))
	}
	ctx, stop := context.WithCancel(t.Context())
	var producers sync.WaitGroup
	published := make([]int, 4)
	for p := range published {
		producers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				body := fmt.Sprintf(`{"id": "p%d-%d", "topic": "orders", "data": "p%d-%d"}`, p, n, p, n)
				for !submitTo(node.url()+"/v1/events", body) {
					pause(context.WithoutCancel(ctx), 5*time.Millisecond)
				}
				published[p] = n + 1
			}
		})
	}
	for range *cycles {
		before := got.count()
		eventuallyWithin(t, "events arrive after a kill", 2*time.Minute, func() bool { return got.count() > before+1 })
		pause(t.Context(), time.Duration(rand.IntN(100))*time.Millisecond)
		node.kill()
		node.start()
	}
	node.ready()
	stop()
	producers.Wait()
	want := 0
	for _, n := range published {
		want += n * len(subscribers)
	}
	eventuallyWithin(t, "all events have arrived", 2*time.Minute, func() bool { return got.count() == want })
	for p, n := range published {
		for i := range n {
			for _, path := range subscribers {
				if ids := got.got[fmt.Sprintf("%s \"p%d-%d\"", path, p, i)]; len(ids) != 1 {
					t.Errorf("event p%d-%d came to %s under %d ids", p, i, path, len(ids))
				}
			}
			var e struct{ Matched int }
			if i == 0 {
				if err := getJSON(node.url()+fmt.Sprintf("/v1/events/p%d-%d", p, i), &e); err != nil || e.Matched != len(subscribers) {
					t.Errorf("event p%d-%d: %+v, %v", p, i, e, err)
				}
			}
		}
	}
	if err := node.end(); err != nil {
		t.Errorf("stop: %v", err)
	}
	t.Logf("%d events, %d kills", want/len(subscribers), *cycles)
}

func put(t *testing.T, url, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		t.Fatalf("PUT %s: %s: %s", url, resp.Status, text)
	}
}
