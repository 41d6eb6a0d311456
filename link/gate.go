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
	mostWaiting = 1024 // requests that wait to be let in
	// perBatch is how many small requests take the room of one full batch. They
	// share a commit, so that it is worth to have many of them at work.
	perBatch  = 16
	enterWait = 5 * time.Second
	// busyFor and busySpread are when a site that is not let in comes again.
	busyFor    = time.Second
	busySpread = 4 * time.Second
)

// purpose is what a request is for. Each has its own bound, so that none takes
// the place of another.
type purpose int

const (
	forMessages purpose = iota
	forCommands         // polls, and answers
	forQuestions
)

// siteAtOnce is how many requests of one site for one purpose there are at one
// time. A site may be two machines.
func siteAtOnce(p purpose) int {
	switch p {
	case forCommands:
		return 4
	case forMessages, forQuestions:
	}
	return 8
}

// At once over all sites: what reads the store.
const (
	pollsBegun     = 32
	questionsAtAll = 32
)

type visitor struct {
	site string
	to   purpose
}

// gate lets in what has room, those first that came first. Who waits costs a
// connection, no memory: the body of a request is read inside.
type gate struct {
	all       int64
	room      *semaphore.Weighted // of bytes: bodies that come quickly, and all that is at work
	waiting   atomic.Int64
	polls     *semaphore.Weighted
	questions *semaphore.Weighted

	mu     sync.Mutex
	visits map[visitor]int
	slow   map[string]bool // sites whose bodies take long
	lane   slowLane
}

func newGate(atWork int) *gate {
	all := int64(max(atWork, 1)) * batchBytes
	return &gate{
		all: all, room: semaphore.NewWeighted(all), polls: semaphore.NewWeighted(pollsBegun), questions: semaphore.NewWeighted(questionsAtAll),
		visits: map[visitor]int{}, slow: map[string]bool{}, lane: slowLane{all: all, by: map[string][]*admission{}},
	}
}

// visit bounds what one site can take up, whatever it does.
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

// pass waits a moment for one of a few places. Its request is read already, so
// that nobody holds one who sends nothing.
func pass(ctx context.Context, places *semaphore.Weighted) (leave func(), ok bool) {
	ctx, cancel := context.WithTimeout(ctx, enterWait)
	defer cancel()
	if places.Acquire(ctx, 1) != nil {
		return nil, false
	}
	return func() { places.Release(1) }, true
}

// tooBusy asks a site to come again, each at another time. Nothing was begun,
// so that nothing is charged there.
func tooBusy(w http.ResponseWriter) {
	comeAgain(w, http.StatusServiceUnavailable, "central lets others in first")
}

// tooSlow asks it to come again with less: 408 makes its batches smaller.
func tooSlow(w http.ResponseWriter) {
	comeAgain(w, http.StatusRequestTimeout, "the line is slow, and others need the room; send less at once")
}

func comeAgain(w http.ResponseWriter, status int, text string) {
	wait := between(busyFor, busyFor+busySpread)
	w.Header().Set("Retry-After", retryafter.Seconds(wait))
	refuse(w, status, wire.Reply{Outcome: holdfast.NotStarted.String(), Code: "busy", Error: text, RetryAfter: wait})
}
