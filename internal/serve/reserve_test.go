package serve_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/internal/serve"
)

// distant is a listener whose connections seem to come from another machine.
type distant struct{ net.Listener }

type distantConn struct{ net.Conn }

func (l distant) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return distantConn{c}, nil
}

func (distantConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 4711} }

// F1-18: connections of other machines that are all in use by somebody known
// leave those that are for this machine alone: operators get in.
func TestThisMachineHasConnectionsOfItsOwn(t *testing.T) {
	t.Parallel()
	const most, ours = 16, 2
	guard := serve.NewGuard(serve.Limits{Connections: most}, nil)
	held, goOn := make(chan struct{}), make(chan struct{})
	here, there := loopback(t), loopback(t)
	serveOn(t, guard, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hold" {
			serve.Known(r)
			held <- struct{}{}
			<-goOn
		}
	}), here, distant{there})
	send := func(path string) *bufio.Reader {
		c, err := net.Dial("tcp", there.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_, _ = fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path) // one that is closed already gets no answer
		return bufio.NewReader(c)
	}
	var all []*bufio.Reader
	for range most - ours {
		all = append(all, send("/hold"))
		<-held
	}
	if r, err := http.ReadResponse(send("/"), nil); err == nil {
		t.Errorf("one more of another machine: got %s", r.Status)
		r.Body.Close()
	}
	if got := guard.Refused()["connection"]; got != 1 {
		t.Errorf("%d connections were refused, want one", got)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for i := range 20 {
		r, err := client.Get("http://" + here.Addr().String())
		if err != nil {
			t.Fatalf("request %d of this machine: %v", i, err)
		}
		r.Body.Close()
	}
	close(goOn)
	for _, one := range all {
		r, err := http.ReadResponse(one, nil)
		if err != nil {
			t.Fatalf("one that was there: %v", err)
		}
		r.Body.Close()
	}
}

// pipes is a listener in memory, of as many connections as a test hands in.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (pipes) Close() error   { return nil }
func (pipes) Addr() net.Addr { return &net.UnixAddr{} }

// F1-01: who is refused before the body is read hears so at once, and not when
// the body has come or its time is over.
func TestARefusalWaitsForNoBody(t *testing.T) {
	t.Parallel()
	for _, expect := range []string{"", "Expect: 100-continue\r\n"} {
		t.Run(expect, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				guard, listener := serve.NewGuard(serve.Limits{}, nil), make(pipes)
				s := guard.Server(http.NotFoundHandler())
				ended := make(chan error, 1)
				go func() { ended <- s.Serve(guard.Listener(listener)) }()
				near, far := net.Pipe()
				listener <- far
				began := time.Now()
				if _, err := fmt.Fprintf(near, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n%s\r\n", expect); err != nil {
					t.Fatal(err)
				}
				r, err := http.ReadResponse(bufio.NewReader(near), nil)
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); r.StatusCode != http.StatusNotFound || took != 0 {
					t.Errorf("got %s after %s, want 404 at once", r.Status, took)
				}
				_, _ = io.Copy(io.Discard, r.Body)
				_, _ = r.Body.Close(), near.Close()
				close(listener)
				if err := <-ended; err == nil {
					t.Error("the server ended without its listener's error")
				}
				_ = s.Shutdown(context.Background())
			})
		})
	}
}
