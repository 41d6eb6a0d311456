package exchange_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log" //nolint:depguard // http.Server wants one
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/addressguard"
	"github.com/holdfast-mq/holdfast/internal/exchange"
	"github.com/holdfast-mq/holdfast/internal/exchangetest"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/internal/secrets"
)

func client(t *testing.T, s exchange.Settings) *exchange.Client {
	t.Helper()
	c := exchange.NewClient(s)
	t.Cleanup(c.Close)
	return c
}

// ask makes one request and reads the answer to its end.
func ask(t *testing.T, c *exchange.Client, method, url string) (status int, body string, f *holdfast.Failure) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader([]byte(`{"id":1}`)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", "m") // net/http would repeat by itself what has one
	resp, f := c.Do(req, nil)
	if f != nil {
		return 0, "", f
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text), nil
}

func methods() []string {
	return []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodGet, http.MethodHead}
}

// F1-30: one Do is one request, whatever the method.
func TestAWarmConnectionThatIsClosedIsNoReasonToAskAgain(t *testing.T) {
	t.Parallel()
	for _, method := range methods() {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			s := exchangetest.Slamming(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			c := client(t, exchange.Settings{Idle: 32})
			s.Warm(20, func() { _, _, _ = ask(t, c, method, s.URL) })
			for n := range 20 {
				_, _, f := ask(t, c, method, s.URL)
				if f == nil || f.Code != exchange.Lost || !f.MaybeDelivered || f.Outcome != holdfast.Transient {
					t.Fatalf("got %+v, want a connection that was lost, and may have delivered", f)
				}
				if got, want := s.Requests(), 21+n; got != want {
					t.Fatalf("the server has seen %d requests, want %d", got, want)
				}
			}
			if status, _, f := ask(t, c, method, s.URL); status != 200 {
				t.Errorf("with a new connection: %d, %v", status, f)
			}
		})
	}
}

// F1-30: what was closed while it was idle costs another connection, and nothing
// else, over TLS, too.
func TestAConnectionThatIsClosedWhileIdleCostsNothing(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"http", "https"} {
		for _, method := range methods() {
			t.Run(scheme+" "+method, func(t *testing.T) {
				t.Parallel()
				var seen atomic.Int64
				conns := make(chan net.Conn, 64)
				s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { seen.Add(1) }))
				s.Config.ErrorLog = log.New(io.Discard, "", 0)
				s.Config.ConnState = func(c net.Conn, state http.ConnState) {
					if state == http.StateIdle {
						conns <- c
					}
				}
				conf := exchange.Settings{Idle: 4}
				if scheme == "https" {
					s.StartTLS()
					conf.TLS = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
					conf.TLS.RootCAs.AddCert(s.Certificate())
				} else {
					s.Start()
				}
				t.Cleanup(s.Close)
				c := client(t, conf)
				for n := range 50 {
					if status, _, f := ask(t, c, method, s.URL); status != 200 {
						t.Fatalf("request %d: %+v", n, f)
					}
					conn := <-conns
					if inside, ok := conn.(*tls.Conn); ok && n%2 == 0 {
						conn = inside.NetConn() // no word of TLS before the end
					}
					conn.Close()
				}
				if seen.Load() != 50 {
					t.Errorf("the server has seen %d requests, want 50", seen.Load())
				}
			})
		}
	}
}

// A server of HTTP/2 is spoken to in HTTP/1.1, where a request that fails on a
// connection says nothing about others.
func TestHTTP2IsNotSpoken(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	conf := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool(), NextProtos: []string{"h2", "http/1.1"}}
	conf.RootCAs.AddCert(s.Certificate())
	if _, body, f := ask(t, client(t, exchange.Settings{TLS: conf}), http.MethodPost, s.URL); body != "HTTP/1.1" {
		t.Errorf("got %q, %v", body, f)
	}
}

// F1-08: neither what stands in place of an answer nor its headers are taken in
// full, nor told.
func TestWhatStandsInPlaceOfAnAnswerIsBounded(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no status line": strings.Repeat("hunter2-hunter2 ", 9<<20/16) + "\r\n\r\n",
		"long header":    "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 9<<20) + "\r\n\r\n",
		"many headers":   "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 1<<20) + "\r\n",
		"no end of 1xx":  strings.Repeat("HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n", 1<<18),
		"no status":      "HTTP/1.1 " + strings.Repeat("9", 1<<20) + " OK\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { l.Close() })
			sent := make(chan int64, 1)
			go func() {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				defer conn.Close()
				_, _ = conn.Read(make([]byte, 1))              // the request has left
				n, _ := io.Copy(conn, strings.NewReader(text)) // as much as the client takes
				sent <- n
			}()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+l.Addr().String(), http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			_, f := client(t, exchange.Settings{}).Do(req, func() *secrets.Set { //nolint:bodyclose // there is no answer
				s := &secrets.Set{}
				s.Add("hunter2-hunter2")
				return s
			})
			if f == nil || f.Code != exchange.Lost || len(f.Error()) > 600 || strings.Contains(f.Error(), "hunter2") {
				t.Errorf("got %.2000v", f)
			}
			if n := <-sent; n >= 8<<20 {
				t.Errorf("it has taken %d bytes", n)
			}
		})
	}
}

func TestRedirectsAreNotFollowedAndBodiesComeAsTheyAre(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "" || r.Header.Get("Authorization") != "Basic dTpw" {
			t.Errorf("got the headers %v", r.Header)
		}
		w.Header().Set("Location", "/elsewhere")
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(http.StatusFound)
		_, _ = io.WriteString(w, "no gzip")
	}))
	t.Cleanup(s.Close)
	status, body, f := ask(t, client(t, exchange.Settings{}), http.MethodGet, strings.Replace(s.URL, "://", "://u:p@", 1))
	if status != http.StatusFound || body != "no gzip" {
		t.Errorf("got %d %q, %v", status, body, f)
	}
}

// A guard refuses a host before anything is connected to, also on the way through a proxy, which is
// exempt itself.
func TestAGuardRefusesAddresses(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was asked") }))
	t.Cleanup(s.Close)
	through, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	for name, proxy := range map[string]func(*url.URL) (*url.URL, error){
		"none": nil, "of ours": func(*url.URL) (*url.URL, error) { return through, nil },
		"not for it": func(*url.URL) (*url.URL, error) { return nil, nil }, //nolint:nilnil // as http.ProxyURL
	} {
		for _, host := range []string{"127.0.0.1", "localhost", "１２７.0.0.1", "[::ffff:127.0.0.1]", "127.1"} {
			c := client(t, exchange.Settings{Guard: &addressguard.Guard{}, Proxy: proxy})
			_, _, f := ask(t, c, http.MethodPost, strings.Replace(s.URL, "127.0.0.1", host, 1))
			if f == nil || f.Outcome != holdfast.LaneFault || f.Code != exchange.Forbidden || f.MaybeDelivered {
				t.Errorf("%s, proxy %s: got %+v", host, name, f)
			}
		}
	}
}

// A proxy gets the request for a host that the guard allows, whether that resolves here to what the
// proxy would reach or not.
func TestAProxyIsExempt(t *testing.T) {
	t.Parallel()
	var seen string
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.RequestURI }))
	t.Cleanup(s.Close)
	through, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	guard := &addressguard.Guard{Lookup: func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("93.184.215.14")}, nil
	}}
	c := client(t, exchange.Settings{Guard: guard, Proxy: func(*url.URL) (*url.URL, error) { return through, nil }})
	if status, _, f := ask(t, c, http.MethodPost, "http://example.com/a?b"); status != 200 || seen != "http://example.com/a?b" {
		t.Errorf("got %d, %v; the proxy has seen %q", status, f, seen)
	}
}

// Connections of all hosts together are bounded, and counted.
func TestIdleConnectionsOfAllHosts(t *testing.T) {
	t.Parallel()
	var uses exchange.Uses
	c := client(t, exchange.Settings{Idle: 2, IdleAll: 3, Uses: &uses})
	var hosts []string
	for range 4 {
		s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		t.Cleanup(s.Close)
		hosts = append(hosts, s.URL)
	}
	for _, n := range []int{0, 1, 2, 3, 1, 2, 3, 0, 3} { // the first host's was idle longest when the fourth came, and the second's when the first came again
		if _, _, f := ask(t, c, http.MethodPost, hosts[n]); f != nil {
			t.Fatal(f)
		}
	}
	if opened, reused := uses.Opened.Load(), uses.Reused.Load(); opened != 5 || reused != 4 {
		t.Errorf("%d opened and %d times reused, want 5 and 4", opened, reused)
	}
}

// What is idle for too long is closed, and no more is kept than was said.
func TestIdleConnectionsEnd(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		var open, most atomic.Int64
		dial := func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			open.Add(1)
			go func() {
				defer open.Add(-1)
				buf := make([]byte, 4096)
				for {
					if _, err := theirs.Read(buf); err != nil {
						return
					}
					if _, err := io.WriteString(theirs, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"); err != nil {
						return
					}
				}
			}()
			return ours, nil
		}
		c := client(t, exchange.Settings{Dial: dial, Idle: 2, IdleFor: time.Minute})
		answers := make([]*http.Response, 5)
		for i := range answers {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://peer.test", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			var f *holdfast.Failure
			if answers[i], f = c.Do(req, nil); f != nil { //nolint:bodyclose // it is closed below
				t.Fatal(f)
			}
		}
		most.Store(open.Load())
		for _, a := range answers {
			if _, err := io.ReadAll(a.Body); err != nil {
				t.Error(err)
			}
			a.Body.Close()
		}
		synctest.Wait()
		if most.Load() != 5 || open.Load() != 2 {
			t.Errorf("%d connections, %d of them kept; want 5 and 2", most.Load(), open.Load())
		}
		time.Sleep(61 * time.Second)
		synctest.Wait()
		if open.Load() != 0 {
			t.Errorf("%d are kept after a minute", open.Load())
		}
	})
}
