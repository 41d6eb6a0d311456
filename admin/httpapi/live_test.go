package httpapi_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/internal/waittest"
)

// listening serves a fixture, and runs the part that looks for changes.
func listening(t *testing.T, f *fixture) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(f.handler)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	live := admin.Live{Service: f.Service}
	go func() { ended <- live.Run(ctx) }()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	waittest.Until(t, "the node looks for changes", func() bool {
		follow, err := live.Follow(t.Context(), 0)
		if err != nil {
			return false
		}
		over, end := context.WithCancel(t.Context())
		end()
		return follow(over, func([]api.LiveEvent) error { return nil }) == nil
	})
	return server
}

// hints opens a stream, and returns a function that waits for an event of a kind and returns its data.
func hints(t *testing.T, server *httptest.Server, header map[string]string) (next func(kind string) string, status int, got http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/v1/live", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	answer, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	lines := bufio.NewScanner(answer.Body)
	return func(kind string) string {
		t.Helper()
		for lines.Scan() {
			if lines.Text() == "event: "+kind && lines.Scan() {
				return strings.TrimPrefix(lines.Text(), "data: ")
			}
		}
		t.Fatalf("the stream ended before %s", kind)
		return ""
	}, answer.StatusCode, answer.Header
}

// A page hears that something changed, and of which message; nothing of what it is now.
func TestAStreamHintsAtWhatChanged(t *testing.T) {
	t.Parallel()
	f, db := followed(t)
	server := listening(t, f)
	all, _, got := hints(t, server, f.token(t, `{"name":"all","role":"read"}`))
	for name, want := range map[string]string{"Content-Type": "text/event-stream", "X-Accel-Buffering": "no", "Cache-Control": "no-store"} {
		if got.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, got.Get(name), want)
		}
	}
	if got := all("hello"); !strings.Contains(got, `"messages":true`) || strings.Contains(got, "resumed") {
		t.Errorf("hello is %s", got)
	}
	sent(t, db, "inventory")
	if got := all("counts"); got != "{}" {
		t.Errorf("counts is %s", got)
	}
	if got := all("message"); got != `{"ids":["m0"]}` {
		t.Errorf("message is %s", got)
	}
	header := f.token(t, `{"name":"again","role":"read"}`)
	header["Last-Event-ID"] = "0"
	again, _, _ := hints(t, server, header)
	if got := again("hello"); strings.Contains(got, "resumed") {
		t.Errorf("hello is %s", got)
	}
	sent(t, db, "inventory", "billing")
	header["Last-Event-ID"] = "1"
	more, _, _ := hints(t, server, header)
	if got := more("hello"); !strings.Contains(got, `"resumed":true,"missed":1`) {
		t.Errorf("hello is %s", got)
	}
}

// A hint is about nothing outside of the scope, and does not count it either.
func TestHintsKeepToTheScope(t *testing.T) {
	t.Parallel()
	f, db := followed(t)
	server := listening(t, f)
	header := f.token(t, `{"name":"inv","role":"read","destinations":["inventory"]}`)
	header["Last-Event-ID"] = "1"
	own, _, _ := hints(t, server, header)
	if got := own("hello"); strings.Contains(got, "missed") {
		t.Errorf("hello counts what others did: %s", got)
	}
	all, _, _ := hints(t, server, f.token(t, `{"name":"all","role":"read"}`))
	all("hello")
	sent(t, db, "billing")
	all("message")
	if _, err := db.Enqueue(t.Context(), holdfast.Message{ID: "mine", Destination: "inventory", Endpoint: "E"}); err != nil {
		t.Fatal(err)
	}
	if got := own("message"); got != `{"ids":["mine"]}` {
		t.Errorf("message is %s", got)
	}
}

// What changes faster than it can be named is counted, so that a drain costs a stream no more than quiet does.
func TestManyChangesAreCounted(t *testing.T) {
	t.Parallel()
	f, db := followed(t)
	server := listening(t, f)
	all, _, _ := hints(t, server, f.token(t, `{"name":"all","role":"read"}`))
	all("hello")
	list := make([]holdfast.Message, 5000)
	for i := range list {
		list[i] = holdfast.Message{ID: holdfast.ID(fmt.Sprint("n", i)), Destination: "inventory", Endpoint: "E"}
	}
	for part := list; len(part) > 0; part = part[1000:] {
		if _, err := db.Enqueue(t.Context(), part[:1000]...); err != nil {
			t.Fatal(err)
		}
	}
	for {
		if got := all("message"); strings.Contains(got, `"more":`) {
			return
		}
	}
}

// A caller's streams are bounded, and so are all.
func TestStreamsOfHintsAreBounded(t *testing.T) {
	t.Parallel()
	f, _ := followed(t)
	header := f.token(t, `{"name":"all","role":"read"}`)
	server := listening(t, f)
	for range 64 {
		hints(t, server, header)
	}
	_, status, got := hints(t, server, header)
	if status != http.StatusServiceUnavailable || got.Get("Retry-After") == "" {
		t.Errorf("got %d", status)
	}
	next, _, _ := hints(t, server, f.token(t, `{"name":"other","role":"read"}`))
	next("hello")
}
