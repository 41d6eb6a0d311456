package node_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	neturl "net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/node"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/transport"
	"github.com/holdfast-mq/holdfast/transport/transporttest"
	"github.com/holdfast-mq/holdfast/wire"
)

const key = "0123456789abcdef0123456789abcdef"

func parse(t *testing.T, text string) *config.Config {
	t.Helper()
	env := config.Process(node.DestinationKinds())
	env.Lookup = func(name string) (string, bool) {
		return "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=", name == "SECRET"
	}
	c, _, err := config.Parse("holdfast.yaml", []byte(text), env, config.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	c.Data, c.Listen, c.Node.ID, c.Drain = t.TempDir(), "127.0.0.1:0", "here", 0
	return c
}

// serve runs a node until the test ends, and wants it to stop without error.
func serve(t *testing.T, c *config.Config) (url string) {
	t.Helper()
	return serveWith(t, c, node.Options{})
}

func serveWith(t *testing.T, c *config.Config, o node.Options) (url string) {
	t.Helper()
	ready := make(chan string, 1)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	o.Ready = func(a string) { ready <- a }
	go func() { ended <- node.Serve(ctx, c, o) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	select {
	case a := <-ready:
		return "http://" + a
	case err := <-ended:
		ended <- err
		t.Fatal(err)
	}
	return ""
}

func sender(t *testing.T, conf transport.ClientConfig) *transport.Client {
	t.Helper()
	secret, err := wire.NewSecret([]byte(key))
	if err != nil {
		t.Fatal(err)
	}
	conf.Source, conf.Secrets = "shop", []*wire.Secret{secret}
	c, err := transport.NewClient(conf)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// told stops a node in the moment of a line of its log.
type told struct {
	lines atomic.Int64 // until then
	stop  context.CancelFunc
}

func (a *told) Write(p []byte) (int, error) {
	if a.lines.Add(-1) == 0 {
		a.stop()
	}
	return len(p), nil
}

// A stop is told at each line of a start, and in the moment in which the node is ready: it ends
// without error and soon, and what the store has is there for the next start.
func TestAStopDuringTheStartIsNoError(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T, c *config.Config) func() store{
		"file": func(t *testing.T, c *config.Config) func() store {
			t.Helper()
			return func() store { return openFile(t, c) }
		},
		"database": func(t *testing.T, c *config.Config) func() store {
			t.Helper()
			dsn := pgtest.Shared(t).Database(t)
			var err error
			if c.Store, err = config.NewDatabase(dsn); err != nil {
				t.Fatal(err)
			}
			return func() store { return openDatabase(t, dsn) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := parse(t, "")
			opened := open(t, c)
			s := opened()
			_, err := s.Enqueue(t.Context(), holdfast.Message{ID: "m", Destination: "nobody", Endpoint: "E", Payload: []byte("1")})
			if err := errors.Join(err, s.Close()); err != nil {
				t.Fatal(err)
			}
			for line, ready := int64(0), false; !ready; line++ {
				ctx, cancel := context.WithCancel(t.Context())
				at := &told{stop: cancel}
				if at.lines.Store(line); line == 0 {
					cancel()
				}
				began := time.Now()
				err := node.Serve(ctx, c, node.Options{Log: at, Ready: func(string) {
					ready = at.lines.Load() > 0
					cancel()
				}})
				cancel()
				if took := time.Since(began); err != nil || took > 10*time.Second {
					t.Errorf("told at line %d: it took %s, and ended with %v", line, took, err)
				}
			}
			s = opened()
			r, err := s.Get(t.Context(), "m")
			if err := errors.Join(err, s.Close()); err != nil || r.State != holdfast.Pending {
				t.Errorf("its message is %s, %v", r.State, err)
			}
		})
	}
}

// Design 16, F1-02, F1-04: loopback needs no token unless it is told so;
// elsewhere there must be one unless nobody is asked.
func TestWhenTokensAreNeeded(t *testing.T) {
	t.Parallel()
	db := open(t, t.TempDir())
	defer db.Close()
	tcp := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 8420} }
	for _, ip := range []string{"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"} {
		if needed, err := node.AuthRequired(t.Context(), tcp(ip), db, config.TokensRemote); needed || err != nil {
			t.Errorf("%s: %t, %v; want none needed", ip, needed, err)
		}
	}
	if needed, err := node.AuthRequired(t.Context(), &net.UnixAddr{Name: "/run/s", Net: "unix"}, db, config.TokensRemote); needed || err != nil {
		t.Errorf("a socket: %t, %v; want none needed", needed, err)
	}
	for _, ip := range []string{"0.0.0.0", "::", "192.0.2.7", "2001:db8::1"} {
		if _, err := node.AuthRequired(t.Context(), tcp(ip), db, config.TokensRemote); err == nil || !strings.Contains(err.Error(), "holdfast tokens create NAME --role admin --data DATA") {
			t.Errorf("%s without a token: got %v, want the way out", ip, err)
		}
		if needed, err := node.AuthRequired(t.Context(), tcp(ip), db, config.TokensNever); needed || err != nil {
			t.Errorf("%s, never: %t, %v", ip, needed, err)
		}
	}
	if err := nodestore.New(db, nil).Tokens.CreateToken(t.Context(), "first", "admin", 0, [32]byte{1}, ""); err != nil {
		t.Fatal(err)
	}
	if needed, err := node.AuthRequired(t.Context(), tcp("192.0.2.7"), db, config.TokensRemote); !needed || err != nil {
		t.Errorf("with a token: %t, %v; want it needed", needed, err)
	}
	// F1-04: a machine that several people share.
	for _, a := range []net.Addr{tcp("127.0.0.1"), &net.UnixAddr{Name: "/run/s", Net: "unix"}} {
		if needed, err := node.AuthRequired(t.Context(), a, db, config.TokensAlways); !needed || err != nil {
			t.Errorf("always, on %s: %t, %v; want it needed", a, needed, err)
		}
	}
}

// A proxy passes its own name on; a signature is proof enough for the way in,
// and everything else keeps its guard.
func TestReceiveBehindAProxy(t *testing.T) {
	t.Parallel()
	url := serve(t, parse(t, "receive: {secrets: {shop: {env: SECRET}}, endpoints: {Book: {keep: true}}}"))
	to, err := neturl.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = "central.example"
	}})
	t.Cleanup(proxy.Close)
	c := sender(t, transport.ClientConfig{URL: proxy.URL})
	if _, err := c.Deliver(t.Context(), holdfast.Message{ID: "m", Endpoint: "Book", Kind: holdfast.Signal, Payload: []byte(`1`)}); err != nil {
		t.Errorf("signed, through a proxy: %v", err)
	}
	resp, err := http.Get(proxy.URL + "/v1/inbox")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("the API by a foreign name: status %d, want 403", resp.StatusCode)
	}
}

// A local program that never answers holds up nothing but its own endpoint.
func TestADeadProgramDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	dead := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-release
	}))
	defer dead.Close()
	defer close(release)
	url := serve(t, parse(t, fmt.Sprintf("stop: 1s\nreceive: {secrets: {shop: {env: SECRET}}, endpoints: {Dead: {forward: %q}, Keep: {keep: true}}}", dead.URL)))
	c := sender(t, transport.ClientConfig{URL: url, Concurrency: 100})
	send := func(id, endpoint string) error {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		_, err := c.Deliver(ctx, holdfast.Message{ID: holdfast.ID(id), Endpoint: endpoint, Kind: holdfast.Signal, Payload: []byte("1")})
		return err
	}
	for i := range 100 {
		go func() { _ = send(fmt.Sprint("dead-", i), "Dead") }()
	}
	for i := range 10 {
		began := time.Now()
		if err := send(fmt.Sprint("keep-", i), "Keep"); err != nil {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	}
}

// The same inside one batch: the sender hears of all others in time, and they
// are not charged.
func TestADeadEndpointInABatch(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		in, out := open(t, t.TempDir()), open(t, t.TempDir())
		defer in.Close()
		defer out.Close()
		const patience = 30 * time.Second // of both sides
		e := &holdfast.Endpoints{Log: in, Map: map[string]holdfast.Endpoint{
			"Keep": {Keep: true},
			"Dead": {Timeout: patience, Forward: holdfast.DelivererFunc(func(ctx context.Context, _ holdfast.Message) (holdfast.Receipt, error) {
				<-ctx.Done()
				return holdfast.Receipt{}, ctx.Err()
			})},
		}}
		handler, err := transport.NewServer(transport.ServerConfig{Receiver: e, Insecure: true})
		if err != nil {
			t.Fatal(err)
		}
		line := transporttest.NewPipeListener()
		server := &http.Server{Handler: handler}
		served := make(chan struct{})
		go func() {
			defer close(served)
			_ = server.Serve(line)
		}()
		client, err := transport.NewClient(transport.ClientConfig{URL: "http://receiver.test", Source: "shop", Dial: line.Dial})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		d := &holdfast.Dispatcher{Store: out, Routes: map[string]holdfast.Route{"a": {Deliverer: client, Timeout: patience}}}
		ended := make(chan error, 1)
		go func() { ended <- d.Run(ctx) }()
		send := func(ms ...holdfast.Message) {
			if _, err := out.Enqueue(t.Context(), ms...); err != nil {
				t.Fatal(err)
			}
		}
		send(holdfast.Message{ID: "first", Destination: "a", Endpoint: "Keep", Payload: []byte(`1`)}) // learns that there are batches
		synctest.Wait()
		ms := []holdfast.Message{{ID: "dead", Destination: "a", Endpoint: "Dead", Payload: []byte(`1`)}}
		for i := range 30 {
			ms = append(ms, holdfast.Message{ID: holdfast.ID(fmt.Sprint("keep-", i)), Destination: "a", Endpoint: "Keep", Payload: []byte(`1`)})
		}
		send(ms...)
		time.Sleep(patience)
		for i := range 30 {
			r, err := out.Get(t.Context(), holdfast.ID(fmt.Sprint("keep-", i)))
			if err != nil || r.State != holdfast.Delivered || r.Failures != 0 {
				t.Errorf("keep-%d is %s after %d charged failures, %v", i, r.State, r.Failures, err)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		client.Close()
		_ = server.Close()
		<-served
		if err := e.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
