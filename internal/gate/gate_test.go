package gate_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/internal/bearer"
	"github.com/holdfast-mq/holdfast/internal/gate"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/internal/serve"
	"github.com/holdfast-mq/holdfast/transport/transporttest"
)

// room is for bodies, in bytes.
const room = 8

// asked serves routes as a node does, over pipes, and returns a client.
func asked(t *testing.T, routes ...gate.Route) *http.Client {
	t.Helper()
	return askedWith(t, gate.Keys{As: func(ctx context.Context, _ string, _ api.Grant) context.Context { return ctx }}, routes...)
}

func askedWith(t *testing.T, keys gate.Keys, routes ...gate.Route) *http.Client {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	handler, err := gate.New(gate.Settings{MaxBodies: room}, keys, routes, log)
	if err != nil {
		t.Fatal(err)
	}
	server := serve.NewGuard(serve.Limits{}, log).Server(handler)
	server.ReadTimeout, server.WriteTimeout = time.Minute, 2*time.Minute
	pipes := transporttest.NewPipeListener()
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(pipes) }()
	calls := &http.Transport{DialContext: pipes.Dial}
	t.Cleanup(func() {
		calls.CloseIdleConnections()
		_ = server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
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
func hear(t *testing.T, c *http.Client, method, path, body string) (heard []string, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://localhost"+path, strings.NewReader(body))
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
			gate.Route{Pattern: "GET /events", Handler: http.HandlerFunc(ticks), Right: api.Read, Long: true},
			gate.Route{Pattern: "GET /page", Handler: http.HandlerFunc(ticks), Right: api.Read},
		)
		heard, err := hear(t, c, http.MethodGet, "/events", "")
		if err != nil {
			t.Error(err)
		}
		if got, want := fmt.Sprint(heard), "[data: 0 after 0s data: 1 after 1h0m0s data: 2 after 2h0m0s data: 3 after 3h0m0s]"; got != want {
			t.Errorf("heard %s, want %s", got, want)
		}
		if heard, err := hear(t, c, http.MethodGet, "/page", ""); err == nil {
			t.Errorf("an answer that is not long went on: %s", heard)
		}
	})
}

// A stream ends soon after its token has ended or may do less, and not because the store cannot say so for a
// while. Without a token, and in any other case, it goes on.
func TestAStreamEndsWithItsToken(t *testing.T) {
	t.Parallel()
	token := bearer.New("hf_")
	const reads, audits = string(api.RoleRead), string(api.RoleAuditor)
	for name, c := range map[string]struct {
		token  string
		rights string // from the second minute on
		err    error
		ends   bool
	}{
		"nothing changes":     {token: token, rights: reads},
		"it was removed":      {token: token, err: holdfast.ErrNotFound, ends: true},
		"it may do less":      {token: token, rights: audits, ends: true},
		"the store is silent": {token: token, err: holdfast.ErrUnavailable},
		"there is no token":   {err: holdfast.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				began := time.Now()
				keys := gate.Keys{
					As: func(ctx context.Context, _ string, _ api.Grant) context.Context { return ctx },
					Find: func(context.Context, [32]byte) (string, string, error) {
						if time.Since(began) < time.Minute {
							return "erp", reads, nil
						}
						return "erp", c.rights, c.err
					},
					Refuse: func(context.Context, *slog.Logger, string, error) *api.Problem {
						return api.Unavailable.Problem("away")
					},
				}
				client := askedWith(t, keys, gate.Route{Pattern: "GET /events", Handler: http.HandlerFunc(ticks), Right: api.Read, Long: true})
				client.Transport = withToken{client.Transport, c.token}
				heard, err := hear(t, client, http.MethodGet, "/events", "")
				if took := time.Since(began); err != nil || len(heard) != map[bool]int{true: 1, false: 4}[c.ends] || c.ends && (took < time.Minute || took > time.Minute+5*time.Second) {
					t.Errorf("heard %s and %v, after %s", heard, err, took)
				}
			})
		})
	}
}

// withToken sends a token with each request.
type withToken struct {
	http.RoundTripper
	token string
}

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.token != "" {
		r.Header.Set("Authorization", "Bearer "+w.token)
	}
	return w.RoundTripper.RoundTrip(r)
}

// ADR 0030: a stream that breaks after its header is gone does not look whole.
func TestAStreamThatPanicsIsCutOff(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		broken := func(w http.ResponseWriter, _ *http.Request) {
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
			panic("broken")
		}
		c := asked(t, gate.Route{Pattern: "GET /events", Handler: http.HandlerFunc(broken), Right: api.Read, Long: true})
		if heard, err := hear(t, c, http.MethodGet, "/events", ""); err == nil {
			t.Errorf("half an answer looks whole: %q", heard)
		}
	})
}

// A long answer holds no room for a body that was read: others get theirs.
func TestALongAnswerGivesTheRoomOfItsBodyBack(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		var inner http.Client
		handler := func(w http.ResponseWriter, r *http.Request) {
			_, err := io.Copy(io.Discard, r.Body)
			if err != nil {
				t.Error(err)
			}
			if r.URL.Path == "/events" {
				if heard, err := hear(t, &inner, http.MethodPost, "/short", "87654321"); err != nil || fmt.Sprint(heard) != "[done after 0s]" {
					t.Errorf("another request meanwhile: got %s and %v", heard, err)
				}
			}
			_, _ = fmt.Fprintln(w, "done")
		}
		inner = *asked(t,
			gate.Route{Pattern: "POST /events", Handler: http.HandlerFunc(handler), Right: api.Read, Long: true, MaxBody: room},
			gate.Route{Pattern: "POST /short", Handler: http.HandlerFunc(handler), Right: api.Read, MaxBody: room},
		)
		heard, err := hear(t, &inner, http.MethodPost, "/events", "12345678")
		if got, want := fmt.Sprint(heard), "[done after 0s]"; err != nil || got != want {
			t.Errorf("got %s and %v, want %s", got, err, want)
		}
	})
}

// A route that does not say for whom it is is open to nobody: the start fails.
func TestARouteSaysForWhomItIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		route gate.Route
		ok    bool
	}{
		"nothing":               {gate.Route{}, false},
		"a right":               {gate.Route{Right: api.Read}, true},
		"signed":                {gate.Route{Signed: true}, true},
		"open":                  {gate.Route{Open: true}, true},
		"a right and open":      {gate.Route{Right: api.Read, Open: true}, false},
		"a right there is not":  {gate.Route{Right: "reader"}, false},
		"long and open":         {gate.Route{Open: true, Long: true}, false},
		"long and signed":       {gate.Route{Signed: true, Long: true}, true},
		"long with a right":     {gate.Route{Right: api.Admin, Long: true}, true},
		"long, for nobody said": {gate.Route{Long: true}, false},
	} {
		c.route.Pattern, c.route.Handler = "GET /x", http.NotFoundHandler()
		if _, err := gate.New(gate.Settings{}, gate.Keys{}, []gate.Route{c.route}, nil); (err == nil) != c.ok {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
