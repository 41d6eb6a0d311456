package link

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/retryafter"
	"github.com/holdfast-mq/holdfast/wire"
)

const (
	mostWaiting = 1024 // requests that wait for admission
	// perBatch is how many small requests take the room of one full batch. They share a commit, so
	// it pays to have many at work.
	perBatch  = 16
	enterWait = 5 * time.Second
	// busyFor and busySpread say after how long a site that was not admitted tries again.
	busyFor    = time.Second
	busySpread = 4 * time.Second
)

// purpose is what a request is for. Each purpose has its own limit, so that no purpose takes the
// room of another.
type purpose int

const (
	forMessages purpose = iota
	forCommands         // polls, and answers
	forQuestions
	forTelemetry
)

// siteAtOnce is how many requests one site may have at one time for one purpose. A site may be two
// machines.
func siteAtOnce(p purpose) int {
	switch p {
	case forCommands:
		return 4
	case forMessages, forQuestions, forTelemetry:
	}
	return 8
}

// Limits over all sites for requests that read the store.
const (
	pollsBegun     = 32
	questionsAtAll = 32
)

type visitor struct {
	site string
	to   purpose
}

// gate admits requests in the order in which they came, as far as there is room. A waiting request
// costs a connection but no memory: its body is read inside the gate.
type gate struct {
	all       int64
	room      *semaphore.Weighted // bytes of quick bodies and of all requests at work
	waiting   atomic.Int64
	polls     *semaphore.Weighted
	questions *semaphore.Weighted
	copies    *semaphore.Weighted // batches of telemetry at work

	mu     sync.Mutex
	visits map[visitor]int
	slow   map[string]bool // sites whose bodies arrive slowly
	lane   slowLane
}

func newGate(atWork int) *gate {
	all := int64(max(atWork, 1)) * batchBytes
	return &gate{
		all: all, room: semaphore.NewWeighted(all), polls: semaphore.NewWeighted(pollsBegun), questions: semaphore.NewWeighted(questionsAtAll), copies: semaphore.NewWeighted(copiesAtOnce),
		visits: map[visitor]int{}, slow: map[string]bool{}, lane: slowLane{all: all, by: map[string][]*admission{}},
	}
}

// visit limits how many requests one site can have inside, whatever it does.
func (g *gate) visit(v visitor) (leave func(), ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.visits[v] >= siteAtOnce(v.to) {
		return nil, false
	}
	g.visits[v]++
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.visits[v]--; g.visits[v] == 0 {
			delete(g.visits, v)
		}
	}, true
}

// pass waits a moment for one of a few places. The request has been read already, so no client can
// hold a place by sending nothing.
func pass(ctx context.Context, places *semaphore.Weighted) (leave func(), ok bool) {
	ctx, cancel := context.WithTimeout(ctx, enterWait)
	defer cancel()
	if places.Acquire(ctx, 1) != nil {
		return nil, false
	}
	return func() { places.Release(1) }, true
}

// tooBusy asks a site to come again, each site at another time. The request was not begun, so the
// site counts no attempt.
func tooBusy(w http.ResponseWriter) {
	comeAgain(w, http.StatusServiceUnavailable, "central is serving other sites first; come again")
}

// tooSlow asks a site to come again with less: a 408 makes its batches smaller.
func tooSlow(w http.ResponseWriter) {
	comeAgain(w, http.StatusRequestTimeout, "the line is slow, and others need the room; send less at once")
}

func comeAgain(w http.ResponseWriter, status int, text string) {
	wait := between(busyFor, busyFor+busySpread)
	w.Header().Set("Retry-After", retryafter.Seconds(wait))
	refuse(w, status, wire.Reply{Outcome: holdfast.NotStarted.String(), Code: "busy", Error: text, RetryAfter: wait})
}
