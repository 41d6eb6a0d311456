package link

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/holdfast-mq/holdfast/internal/serve"
	"github.com/holdfast-mq/holdfast/transport"
)

// quickFor is how long a body may take in the room that all sites share. A slower body moves to the
// slow lane.
const quickFor = 2 * time.Second

// slowLane is room for slow bodies, as large as the room of the quick ones and apart from it. When
// it is full, the site that holds the most gives way. An honest site, whose batches fit its line,
// holds little. It never gives way, however many others hold all that they can. The gate's lock
// guards it.
type slowLane struct {
	all, held int64
	by        map[string][]*admission
}

func (l *slowLane) heldBy(site string) (n int64) {
	for _, s := range l.by[site] {
		n += s.weight
	}
	return n
}

// add makes room for a stay. It returns false if the stay's own site holds the most.
func (l *slowLane) add(s *admission) bool {
	for l.held > 0 && l.held+s.weight > l.all {
		var most int64
		var largest string
		for site := range l.by {
			if n := l.heldBy(site); n > most {
				most, largest = n, site
			}
		}
		if l.heldBy(s.site)+s.weight >= most {
			return false
		}
		l.cut(largest)
	}
	l.by[s.site] = append(l.by[s.site], s)
	l.held += s.weight
	return true
}

// cut ends the largest stay of a site.
func (l *slowLane) cut(site string) {
	victim := l.by[site][0]
	for _, s := range l.by[site] {
		if s.weight > victim.weight {
			victim = s
		}
	}
	l.drop(victim)
	victim.end()
}

func (l *slowLane) drop(s *admission) {
	for i, other := range l.by[s.site] {
		if other == s {
			l.by[s.site] = append(l.by[s.site][:i:i], l.by[s.site][i+1:]...)
			l.held -= s.weight
		}
	}
	if len(l.by[s.site]) == 0 {
		delete(l.by, s.site)
	}
}

type phase int

const (
	outside phase = iota
	inRoom
	inSlowLane
	cutOff
)

// admission is the stay of a request with messages inside the gate. The gate's lock guards the
// fields that change.
type admission struct {
	gate    *gate
	site    string
	weight  int64
	length  int64
	body    *serve.TimedBody
	ctx     context.Context //nolint:containedctx // the request's own, as long as the stay
	began   time.Time
	lagging *time.Timer
	phase   phase
	arrived bool // the whole body has arrived
}

// weight is the room that a request takes: its stated length, or the most that it may send if it
// states none. A request larger than all the room takes all of it.
func (g *gate) weight(length, most int64) int64 {
	if length < 0 || length > most {
		length = most
	}
	return min(max(length, batchBytes/perBatch), g.all)
}

// enter waits a moment for room. The wait counts against the sender's patience. When the result is
// nil, enter has answered the request.
func (g *gate) enter(w http.ResponseWriter, r *http.Request, site string, most int64) *admission {
	s := &admission{gate: g, site: site, weight: g.weight(r.ContentLength, most), length: r.ContentLength, ctx: r.Context(), began: time.Now()}
	if !g.isSlow(site) {
		if !g.wait(r, s.weight) {
			tooBusy(w)
			return nil
		}
		s.phase = inRoom
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	s.body = serve.InTime(w, r)
	if g.slow[site] && !s.toSlowLane() { // the site may have become slow while this request waited
		tooSlow(w)
		return nil
	}
	if s.phase == inRoom {
		s.lagging = time.AfterFunc(quickFor, s.lag)
	}
	return s
}

func (g *gate) isSlow(site string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.slow[site]
}

// wait waits for room and reports whether it got it.
func (g *gate) wait(r *http.Request, takes int64) bool {
	began := time.Now()
	if g.waiting.Add(1) > mostWaiting {
		g.waiting.Add(-1)
		return false
	}
	defer g.waiting.Add(-1)
	patience, err := strconv.ParseInt(r.Header.Get(transport.HeaderBudget), 10, 32)
	wait := enterWait
	if err == nil {
		wait = min(wait, time.Duration(patience)*time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	if g.room.Acquire(ctx, takes) != nil {
		return false
	}
	if err == nil {
		left := max(patience-time.Since(began).Milliseconds(), 0)
		r.Header.Set(transport.HeaderBudget, strconv.FormatInt(left, 10))
	}
	return true
}

// toSlowLane exchanges the stay's room for a place in the slow lane.
func (s *admission) toSlowLane() bool {
	if s.phase == inRoom {
		s.gate.room.Release(s.weight)
	}
	s.phase = outside
	if !s.gate.lane.add(s) {
		return false
	}
	s.phase = inSlowLane
	return true
}

// lag runs when a body takes long. The site counts as slow from then on.
func (s *admission) lag() {
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	if s.phase != inRoom || s.arrived {
		return
	}
	s.gate.slow[s.site] = true
	if !s.toSlowLane() {
		s.end()
	}
}

// end cuts the body off, even while a goroutine reads it. A body that has arrived is only denied
// room: stopping the connection's reads would end the connection for good.
func (s *admission) end() {
	s.phase = cutOff
	if !s.arrived {
		s.body.Stop()
	}
}

var errCutOff = errors.New("the body took too long, and others needed the room")

// Read reads the body. It returns io.EOF only when there is room to work on the request.
func (s *admission) Read(p []byte) (int, error) {
	if s.isCut() {
		return 0, errCutOff
	}
	n, err := s.body.Read(p)
	if errors.Is(err, io.EOF) {
		if in := s.whole(); in != nil {
			return n, in
		}
	}
	return n, err
}

// Close closes the body.
func (s *admission) Close() error { return s.body.Close() }

func (s *admission) isCut() bool {
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	return s.phase == cutOff
}

// whole notes that the whole body has arrived, and takes room for it.
func (s *admission) whole() error {
	g := s.gate
	g.mu.Lock()
	s.arrived = true
	from := s.phase
	g.mu.Unlock()
	if from == inRoom {
		return nil
	}
	if from == cutOff || g.room.Acquire(s.ctx, s.weight) != nil {
		return errCutOff
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if s.phase == cutOff { // cut off in the meantime
		g.room.Release(s.weight)
		return errCutOff
	}
	g.lane.drop(s)
	s.phase = inRoom
	if s.length >= batchBytes/perBatch && time.Since(s.began) <= quickFor { // a small body says little about the line
		delete(g.slow, s.site)
	}
	return nil
}

// leave ends the stay.
func (s *admission) leave() {
	if s.lagging != nil {
		s.lagging.Stop()
	}
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	switch s.phase {
	case inRoom:
		s.gate.room.Release(s.weight)
	case inSlowLane:
		s.gate.lane.drop(s)
	case outside, cutOff:
	}
	s.phase = outside
}
