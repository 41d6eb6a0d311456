package email

import (
	"context"
	"slices"
	"sync"
	"time"
)

// pool keeps the connections of one channel. Their number never exceeds its capacity, including
// connections that are being made (E30).
type pool struct {
	turns chan struct{} // holds one value for each connection in use
	rest  time.Duration // how long an idle connection is kept

	mu     sync.Mutex
	idle   []*session // the most recently used is last
	closed bool       // no connection is kept any more
}

func newPool(most int, rest time.Duration) *pool {
	return &pool{turns: make(chan struct{}, most), rest: rest}
}

// enter waits for the right to have a connection; leave gives it back. Only a holder of the right
// who finds no idle connection makes a new one. So connections in use and idle ones never exceed
// the capacity together.
func (p *pool) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case p.turns <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *pool) leave() { <-p.turns }

// take returns the most recently used idle connection, or nil.
func (p *pool) take() *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		return nil
	}
	s := p.idle[len(p.idle)-1]
	p.idle = p.idle[:len(p.idle)-1]
	s.expiry.Stop()
	s.reused = true
	return s
}

// put keeps a connection for a while. If it returns false, the caller must end the connection.
func (p *pool) put(s *session) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	s.since = time.Now()
	s.expiry = time.AfterFunc(p.rest, func() { p.expire(s) })
	p.idle = append(p.idle, s)
	return true
}

// expire ends a connection that has been idle long enough. The connection counts until it is
// closed. If all rights are taken, it is kept for the next holder.
func (p *pool) expire(old *session) {
	select {
	case p.turns <- struct{}{}:
		defer p.leave()
	default:
		p.mu.Lock()
		defer p.mu.Unlock()
		if slices.Contains(p.idle, old) {
			old.expiry.Reset(p.rest)
		}
		return
	}
	if p.remove(old) {
		old.quit()
	}
}

// remove returns false if the session has been taken in the meantime.
func (p *pool) remove(old *session) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.idle, old)
	if i < 0 {
		return false
	}
	p.idle = slices.Delete(p.idle, i, i+1)
	return true
}

// close ends all idle connections, and keeps none that is given back later.
func (p *pool) close() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	var all sync.WaitGroup
	for _, s := range idle {
		s.expiry.Stop()
		all.Go(s.quit)
	}
	all.Wait()
}
