// Package exchangetest has servers that treat the connections of a client badly, and count
// requests.
package exchangetest

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
)

// Server answers at most the first request of each connection.
type Server struct {
	*httptest.Server
	requests atomic.Int64
	hold     atomic.Pointer[sync.WaitGroup]
}

type connKey struct{}

// Slamming returns a server that answers the first request of a connection. It reads the header of
// the next request and then closes the connection without an answer: the worst moment for a client
// that repeats requests by itself.
func Slamming(tb testing.TB, first http.Handler) *Server {
	tb.Helper()
	s := &Server{}
	s.start(tb, func(w http.ResponseWriter, r *http.Request) {
		if r.Context().Value(connKey{}).(*atomic.Int64).Add(1) > 1 { //nolint:forcetypeassert // ConnContext has put it there
			panic(http.ErrAbortHandler)
		}
		if together := s.hold.Load(); together != nil {
			together.Done()
			together.Wait()
		}
		first.ServeHTTP(w, r)
	})
	return s
}

func (s *Server) start(tb testing.TB, h http.HandlerFunc) {
	tb.Helper()
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		h(w, r)
	}))
	s.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, &atomic.Int64{})
	}
	s.Start()
	tb.Cleanup(s.Close)
}

// Requests returns how many requests it has seen.
func (s *Server) Requests() int { return int(s.requests.Load()) }

// Warm calls do n times at once, so that its client has n used connections open.
func (s *Server) Warm(n int, do func()) {
	together := &sync.WaitGroup{}
	together.Add(n)
	s.hold.Store(together)
	var all sync.WaitGroup
	for range n {
		all.Go(do)
	}
	all.Wait()
	s.hold.Store(nil)
}
