package link

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/retryafter"
	"github.com/holdfast-mq/holdfast/transport"
	"github.com/holdfast-mq/holdfast/wire"
)

const (
	siteAtOnce  = 8    // requests of one site at one time
	mostWaiting = 1024 // requests that wait to be let in
	// perBatch is how many small requests take the room of one full batch. They
	// share a commit, so that it is worth to have many of them at work.
	perBatch  = 16
	enterWait = 5 * time.Second
	// busyFor and busySpread are when a site that is not let in comes again.
	busyFor    = time.Second
	busySpread = 4 * time.Second
)

// gate lets in what has room, those first that came first. Who waits costs a
// connection, no memory: the body of a request is read inside.
type gate struct {
	room    *semaphore.Weighted // of bytes
	waiting atomic.Int64

	mu     sync.Mutex
	visits map[string]int // requests by site
}

func newGate(atWork int) *gate {
	return &gate{room: semaphore.NewWeighted(int64(atWork) * batchBytes), visits: map[string]int{}}
}

// weight is the room that a request takes: that of a full batch if it does not
// say how long it is.
func weight(r *http.Request) int64 {
	if r.ContentLength < 0 {
		return batchBytes
	}
	return min(max(r.ContentLength, batchBytes/perBatch), batchBytes)
}

// visit bounds what one site can take up, whatever it does.
func (g *gate) visit(site string) (leave func(), ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.visits[site] >= siteAtOnce {
		return nil, false
	}
	g.visits[site]++
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.visits[site]--; g.visits[site] == 0 {
			delete(g.visits, site)
		}
	}, true
}

// enter waits a moment for room. The time that it takes is taken off
// the sender's patience.
func (g *gate) enter(r *http.Request) (leave func(), ok bool) {
	began := time.Now()
	if g.waiting.Add(1) > mostWaiting {
		g.waiting.Add(-1)
		return nil, false
	}
	defer g.waiting.Add(-1)
	patience, err := strconv.ParseInt(r.Header.Get(transport.HeaderBudget), 10, 32)
	wait := enterWait
	if err == nil {
		wait = min(wait, time.Duration(patience)*time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	takes := weight(r)
	if g.room.Acquire(ctx, takes) != nil {
		return nil, false
	}
	if err == nil {
		left := max(patience-time.Since(began).Milliseconds(), 0)
		r.Header.Set(transport.HeaderBudget, strconv.FormatInt(left, 10))
	}
	return func() { g.room.Release(takes) }, true
}

// tooBusy asks a site to come again, each at another time. Nothing was begun,
// so that nothing is charged there.
func tooBusy(w http.ResponseWriter) {
	wait := between(busyFor, busyFor+busySpread)
	w.Header().Set("Retry-After", retryafter.Seconds(wait))
	refuse(w, http.StatusServiceUnavailable, wire.Reply{
		Outcome: holdfast.NotStarted.String(), Code: "busy", Error: "central lets others in first", RetryAfter: wait,
	})
}
