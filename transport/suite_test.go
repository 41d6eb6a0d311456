package transport_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast"
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

func TestLocalConforms(t *testing.T) {
	t.Parallel()
	transporttest.Run(t, func(_ *testing.T, r holdfast.Receiver) holdfast.Deliverer { return &transport.Local{Receiver: r} })
}
