package email

import (
	"context"
	"slices"
	"sync"
	"time"
)

// pool keeps the connections of one channel. There are never more than its cap,
// those included that are just being made (E30).
type pool struct {
	turns chan struct{} // one in it for each connection in use
	rest  time.Duration // after which an idle connection is closed

	mu     sync.Mutex
	idle   []*session // the last used one at the end
	closed bool       // none is kept any more
}

func newPool(most int, rest time.Duration) *pool {
	return &pool{turns: make(chan struct{}, most), rest: rest}
}

// enter waits for the right to have a connection; leave gives it back. A
// connection is made only by who has the right and finds none idle, so that those
// in use and those that rest are never more than the cap together.
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

// take returns the connection that was used last, or nil.
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

// put keeps a connection for a while. False: it is the caller's to end.
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

// expire ends a connection that has rested long enough. It counts until it is
// gone: where all rights are taken, it is kept for the next who has one.
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

// remove is false where somebody has taken the session meanwhile.
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

// close ends all that are idle, and keeps none that comes back.
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
