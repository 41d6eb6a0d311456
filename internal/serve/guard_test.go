package serve_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/internal/serve"
	"github.com/holdfast-mq/holdfast/internal/waittest"
)

// post makes a request with a body as if it came from that address.
func post(ctx context.Context, from string, body io.Reader) *http.Request {
	r := httptest.NewRequestWithContext(ctx, "POST", "/", body)
	r.RemoteAddr, r.ContentLength = net.JoinHostPort(from, "4711"), -1
	return r
}

// endless is a body of so many bytes whose last one never comes.
type endless struct {
	ctx  context.Context
	left int
	read *atomic.Int64
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		<-e.ctx.Done()
		return 0, e.ctx.Err()
	}
	n := min(len(p), e.left)
	e.left -= n
	e.read.Add(int64(n))
	return n, nil
}

// deadlined is an answer whose read deadline ends the request's body.
type deadlined struct {
	*httptest.ResponseRecorder
	end context.CancelFunc
}

func (d *deadlined) SetReadDeadline(t time.Time) error {
	if !t.IsZero() && !t.After(time.Now()) {
		d.end()
	}
	return nil
}

func (d *deadlined) SetWriteDeadline(time.Time) error { return nil }

// reads is a handler that reads bodies to their ends, and tells what they hold.
type reads struct {
	held, most atomic.Int64
}

func (h *reads) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var n int64
	defer func() { h.held.Add(-n) }()
	p := make([]byte, 64<<10)
	for {
		one, err := r.Body.Read(p)
		n += int64(one)
		for now := h.held.Add(int64(one)); ; {
			if was := h.most.Load(); now <= was || h.most.CompareAndSwap(was, now) {
				break
			}
		}
		if err == io.EOF {
			return
		}
		if err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
	}
}

// F1-01: 400 strangers send all but the last byte of 4 MiB each, from one
// address or from many: what they hold together is bounded, and whoever sends
// meanwhile and goes on is served within a second, also from their address.
func TestWhatStrangersHoldIsBounded(t *testing.T) {
	t.Parallel()
	for name, from := range map[string]func(i int) string{
		"one address":    func(int) string { return "192.0.2.7" },
		"many addresses": func(i int) string { return fmt.Sprintf("192.0.2.%d", i%200) },
		"one network":    func(i int) string { return fmt.Sprintf("2001:db8::%x", i) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				const budget = 16 << 20
				h := &reads{}
				guard := serve.NewGuard(serve.Limits{Bytes: budget}, nil)
				handler := guard.Handler(h)
				var hostile sync.WaitGroup
				var read atomic.Int64
				var ends []context.CancelFunc
				for i := range 400 {
					ctx, end := context.WithCancel(t.Context())
					ends = append(ends, end)
					hostile.Go(func() {
						w := &deadlined{httptest.NewRecorder(), end}
						handler.ServeHTTP(w, post(t.Context(), from(i), &endless{ctx, 4<<20 - 1, &read}))
					})
				}
				synctest.Wait()
				for i := range 50 {
					began := time.Now()
					w := httptest.NewRecorder()
					handler.ServeHTTP(w, post(t.Context(), []string{"198.51.100.1", from(0)}[i%2], strings.NewReader(strings.Repeat("x", 1<<20))))
					if took := time.Since(began); w.Code != 200 || took > time.Second {
						t.Errorf("request %d: got %d after %s", i, w.Code, took)
					}
				}
				time.Sleep(time.Minute) // of the bubble: those left give way or stay within the budget
				if got := h.most.Load(); got > budget || read.Load() < budget/2 {
					t.Errorf("at most %d bytes were held of a budget of %d, and %d read", got, budget, read.Load())
				}
				if guard.Refused()["crowded"] == 0 {
					t.Errorf("got %v, want those counted that had to give way", guard.Refused())
				}
				for _, end := range ends {
					end()
				}
				hostile.Wait()
			})
		})
	}
}

// F1-01: who is known gives way to nobody, and takes nothing of the strangers'.
func TestAKnownSenderIsNoStranger(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		guard := serve.NewGuard(serve.Limits{Bytes: 1 << 20, Requests: 4}, nil)
		go1 := make(chan struct{})
		handler := guard.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "" && !serve.Known(r) {
				t.Error("had to give way before anybody else was there")
			}
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			<-go1
		}))
		var all sync.WaitGroup
		var served atomic.Int64
		for range 40 {
			all.Go(func() {
				r := post(t.Context(), "192.0.2.7", strings.NewReader(strings.Repeat("x", 2<<20)))
				r.Header.Set("Authorization", "yes")
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, r)
				if w.Code == 200 {
					served.Add(1)
				}
			})
			synctest.Wait() // it is known by now: until then it is one of four strangers
		}
		close(go1)
		all.Wait()
		if served.Load() != 40 {
			t.Errorf("%d of 40 known requests were served", served.Load())
		}
	})
}

// F1-03: every refusal is counted by its reason, those of net/http too.
func TestEachRefusalIsCounted(t *testing.T) {
	t.Parallel()
	guard := serve.NewGuard(serve.Limits{}, nil)
	handler := guard.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
		}
	}))
	for i := range 10 {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "GET", []string{"/", "/x"}[i%2], nil))
	}
	if got := guard.Refused(); got["http_404"] != 5 || len(got) != 1 {
		t.Errorf("got %v, want five of 404", got)
	}
}

// server runs a guarded server on the loopback.
func server(t *testing.T, guard *serve.Guard, h http.Handler) (address string) {
	t.Helper()
	l := loopback(t)
	serveOn(t, guard, h, l)
	return l.Addr().String()
}

func loopback(t *testing.T) net.Listener {
	t.Helper()
	l, err := serve.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// serveOn runs a guarded server on listeners.
func serveOn(t *testing.T, guard *serve.Guard, h http.Handler, listeners ...net.Listener) {
	t.Helper()
	s := guard.Server(h)
	ended := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { ended <- s.Serve(guard.Listener(l)) }()
	}
	t.Cleanup(func() {
		_ = s.Close()
		for range listeners {
			if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
				t.Error(err)
			}
		}
	})
}

// F1-18: connections that say nothing, or nothing more, starve nobody: whoever
// comes is let in, and the one that has been idle for longest is closed.
func TestIdleConnectionsStarveNobody(t *testing.T) {
	t.Parallel()
	guard := serve.NewGuard(serve.Limits{Connections: 16}, nil)
	address := server(t, guard, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "ok") }))
	idle := make([]net.Conn, 400)
	for i := range idle {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if i%2 == 0 { // one that has brought a request
			_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		}
		if i%50 == 0 {
			r, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + address)
			if err != nil {
				t.Fatalf("after %d connections: %v", i, err)
			}
			r.Body.Close()
		}
	}
	if got := guard.Refused()["connection"]; got < 300 {
		t.Errorf("got %d connections refused of 400 over 16", got)
	}
}

// F1-18: a request in hand of somebody known keeps its connection.
func TestAKnownRequestKeepsItsConnection(t *testing.T) {
	t.Parallel()
	guard := serve.NewGuard(serve.Limits{Connections: 16}, nil)
	here, goOn := make(chan struct{}), make(chan struct{})
	address := server(t, guard, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serve.Known(r)
		close(here)
		<-goOn
		_, _ = io.WriteString(w, "done")
	}))
	answer := make(chan string, 1)
	go func() {
		r, err := http.Get("http://" + address)
		if err != nil {
			answer <- err.Error()
			return
		}
		defer r.Body.Close()
		text, _ := io.ReadAll(r.Body)
		answer <- string(text)
	}()
	<-here
	for range 100 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	for guard.Refused()["connection"] < 80 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	close(goOn)
	if got := <-answer; got != "done" {
		t.Errorf("got %q", got)
	}
}

// F1-03: what the server logs by itself about whoever connects is bounded in
// number and length, and what was no request is counted.
func TestTheServersOwnLogIsBounded(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	guard := serve.NewGuard(serve.Limits{}, slog.New(slog.NewTextHandler(&log, nil)))
	s := guard.Server(http.NotFoundHandler())
	for range 100_000 {
		s.ErrorLog.Print("http: TLS handshake error from 192.0.2.7:4711: ", strings.Repeat("x", 5000))
	}
	if n := log.Len(); n == 0 || n > 200<<10 {
		t.Errorf("got a log of %d bytes", n)
	}
	address := server(t, guard, http.NotFoundHandler())
	for range 20 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, "\x16\x03\x01 no request\r\n\r\n")
		_, _ = io.ReadAll(c)
		c.Close()
	}
	if got := guard.Refused()["no_request"]; got != 20 {
		t.Errorf("got %d connections without a request, want 20", got)
	}
	// Nor is what net/http refuses by itself after a request that was one.
	for _, path := range []string{"", strings.Repeat("x", 64<<10)} {
		if r, err := http.Get("http://" + address + "/" + path); err == nil {
			_, _ = io.Copy(io.Discard, r.Body)
			r.Body.Close()
		}
	}
	waittest.Until(t, "it is counted", func() bool { return guard.Refused()["no_request"] == 21 })
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Len()
}
