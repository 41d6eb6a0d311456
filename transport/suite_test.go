package transport_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/transport"
	"github.com/holdfast-mq/holdfast/transport/transporttest"
	"github.com/holdfast-mq/holdfast/wire"
)

func secret(tb testing.TB, fill string) *wire.Secret {
	tb.Helper()
	s, err := wire.NewSecret([]byte(strings.Repeat(fill, 32)))
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// knows is a server's Peer for one source.
func knows(source string, p transport.Peer) func(string) (transport.Peer, bool) {
	return func(s string) (transport.Peer, bool) { return p, s == source }
}

func newServer(tb testing.TB, conf transport.ServerConfig) *transport.Server {
	tb.Helper()
	if conf.Peer == nil && !conf.Insecure {
		conf.Peer = knows(transporttest.Source, transport.Peer{Secrets: []*wire.Secret{secret(tb, "k")}})
	}
	s, err := transport.NewServer(conf)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func newClient(tb testing.TB, conf transport.ClientConfig) *transport.Client {
	tb.Helper()
	c, err := transport.NewClient(conf)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	return c
}

// listen serves h on a real loopback socket.
func listen(tb testing.TB, h http.Handler) (url string) {
	tb.Helper()
	s := httptest.NewServer(h)
	tb.Cleanup(s.Close)
	return s.URL
}

// pair joins r to a client over loopback.
func pair(tb testing.TB, r holdfast.Receiver, secrets ...*wire.Secret) *transport.Client {
	tb.Helper()
	url := listen(tb, newServer(tb, transport.ServerConfig{Receiver: r, MaxPayload: 64 << 10}))
	return newClient(tb, transport.ClientConfig{URL: url, Secrets: secrets})
}

// pipes is pair in memory.
func pipes(tb testing.TB, h http.Handler, conf transport.ClientConfig) *transport.Client {
	tb.Helper()
	l := transporttest.NewPipeListener()
	s := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Serve(l) //nolint:errcheck // it ends with the test
	}()
	tb.Cleanup(func() {
		s.Close()
		<-done
	})
	conf.URL, conf.Dial = "http://peer.test", l.Dial
	return newClient(tb, conf)
}

func TestHTTPConforms(t *testing.T) {
	t.Parallel()
	transporttest.Suite{
		New: func(t *testing.T, r holdfast.Receiver) holdfast.Deliverer {
			t.Helper()
			return pair(t, r, secret(t, "k"))
		},
		WrongSecret: func(t *testing.T, r holdfast.Receiver) holdfast.Deliverer {
			t.Helper()
			return pair(t, r, secret(t, "x"))
		},
		Nobody: func(t *testing.T) holdfast.Deliverer {
			t.Helper()
			s := httptest.NewServer(http.NotFoundHandler())
			s.Close()
			return newClient(t, transport.ClientConfig{URL: s.URL, Secrets: []*wire.Secret{secret(t, "k")}})
		},
		MaxPayload: 64 << 10,
		Virtual: func(t *testing.T, r holdfast.Receiver) holdfast.Deliverer {
			t.Helper()
			return pipes(t, newServer(t, transport.ServerConfig{Receiver: r}), transport.ClientConfig{Secrets: []*wire.Secret{secret(t, "k")}})
		},
	}.Run(t)
}

// The same over a Unix socket: HTTP with another dialer and listener.
func TestUnixSocketConforms(t *testing.T) {
	t.Parallel()
	join := func(fill string) transporttest.Pair {
		return func(t *testing.T, r holdfast.Receiver) holdfast.Deliverer {
			t.Helper()
			url := listenSocket(t, newServer(t, transport.ServerConfig{Receiver: r, MaxPayload: 64 << 10}))
			return newClient(t, transport.ClientConfig{URL: url, Secrets: []*wire.Secret{secret(t, fill)}})
		}
	}
	transporttest.Suite{
		New:         join("k"),
		WrongSecret: join("x"),
		Nobody: func(t *testing.T) holdfast.Deliverer {
			t.Helper()
			return newClient(t, transport.ClientConfig{URL: "unix://" + socketPath(t), Secrets: []*wire.Secret{secret(t, "k")}})
		},
		MaxPayload: 64 << 10,
		// No Virtual: a socket stops the clock. What it tests does not depend on the dialer.
	}.Run(t)
}

// socketPath is short enough for every system.
func socketPath(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "rf") //nolint:usetesting // a socket's path must be short
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { os.RemoveAll(dir) }) //nolint:errcheck // it is a test
	return filepath.Join(dir, "s")
}

// listenSocket serves h on a Unix socket.
func listenSocket(tb testing.TB, h http.Handler) (url string) {
	tb.Helper()
	path := socketPath(tb)
	l, err := net.Listen("unix", path)
	if err != nil {
		tb.Fatal(err)
	}
	s := httptest.NewUnstartedServer(h)
	s.Listener.Close()
	s.Listener = l
	s.Start()
	tb.Cleanup(s.Close)
	return "unix://" + path
}

// In one process there is no secret, no size limit of its own and always
// somebody; the rest of the suite holds, batches included.
func TestLocalConforms(t *testing.T) {
	t.Parallel()
	transporttest.Run(t, func(_ *testing.T, r holdfast.Receiver) holdfast.Deliverer { return &transport.Local{Receiver: r} })
}

// testBudget of the suite needs a transport that makes batches of single
// messages; Local leaves them single, and begins none after the deadline.
func TestLocalDoesNotStartWhatIsOutOfBudget(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		r := &transporttest.Recorder{Answer: func(_ context.Context, m holdfast.Message) (holdfast.Receipt, error) {
			<-time.After(time.Second)
			return holdfast.Receipt{ID: m.ID}, nil
		}}
		ctx, cancel := context.WithTimeout(t.Context(), 10500*time.Millisecond)
		defer cancel()
		ms := make([]holdfast.Message, 30)
		for i := range ms {
			ms[i] = transporttest.Message()
		}
		results := (&transport.Local{Receiver: r}).DeliverBatch(ctx, ms)
		for i, result := range results {
			if want := holdfast.NotStarted; i > 10 && holdfast.AsFailure(result.Err).Outcome != want || i <= 10 && result.Err != nil {
				t.Errorf("message %d: got %v; want the first 11 delivered and the others not started", i, result.Err)
			}
		}
		if got := len(r.Got()); got != 11 {
			t.Errorf("got %d messages received, want 11", got)
		}
	})
}
