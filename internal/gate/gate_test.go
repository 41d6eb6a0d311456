package gate_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/internal/gate"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/internal/serve"
	"github.com/holdfast-mq/holdfast/transport/transporttest"
)

// asked serves routes as a node does, over pipes, and returns a client.
func asked(t *testing.T, routes ...gate.Route) *http.Client {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	keys := gate.Keys{As: func(ctx context.Context, _ string) context.Context { return ctx }}
	server := serve.NewGuard(serve.Limits{}, log).Server(gate.New(gate.Settings{}, keys, routes, log))
	server.ReadTimeout, server.WriteTimeout = time.Minute, 2*time.Minute
	pipes := transporttest.NewPipeListener()
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(pipes) }()
	calls := &http.Transport{DialContext: pipes.Dial}
	t.Cleanup(func() {
		calls.CloseIdleConnections()
		_ = server.Close()
		_ = <-ended // that it was closed
	})
	return &http.Client{Transport: calls}
}

// ticks sends an event an hour.
func ticks(w http.ResponseWriter, r *http.Request) {
	for n := range 4 {
		_, _ = fmt.Fprintf(w, "data: %d\n", n)
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(time.Hour):
		}
	}
}

// hear reads events, and says how long after the first each came.
func hear(t *testing.T, c *http.Client, path string) (heard []string, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	began := time.Now()
	lines := bufio.NewReader(resp.Body)
	for {
		line, err := lines.ReadString('\n')
		if err == io.EOF {
			return heard, nil
		}
		if err != nil {
			return heard, err
		}
		heard = append(heard, fmt.Sprintf("%s after %s", line[:len(line)-1], time.Since(began)))
	}
}

// ADR 0030: events reach who listens when they are sent, for hours. An answer that
// is not said to be long is ended by the server's times.
func TestAStreamOfEventsGoesThroughTheGate(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		c := asked(t,
			gate.Route{Pattern: "GET /events", Handler: http.HandlerFunc(ticks), Role: api.Read, Long: true},
			gate.Route{Pattern: "GET /page", Handler: http.HandlerFunc(ticks), Role: api.Read},
		)
		heard, err := hear(t, c, "/events")
		if err != nil {
			t.Error(err)
		}
		if got, want := fmt.Sprint(heard), "[data: 0 after 0s data: 1 after 1h0m0s data: 2 after 2h0m0s data: 3 after 3h0m0s]"; got != want {
			t.Errorf("heard %s, want %s", got, want)
		}
		if heard, err := hear(t, c, "/page"); err == nil {
			t.Errorf("an answer that is not long went on: %s", heard)
		}
	})
}
