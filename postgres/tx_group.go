package postgres

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// group makes concurrent calls share transactions: calls that arrive during one transaction share
// the next. One goroutine runs them one after the other, so that a node's own transactions of a
// kind never wait for each other.
type group[T any] struct {
	db   *DB
	most int                                        // greatest weight of one transaction
	all  func(ctx context.Context, list []*call[T]) // answers each call of the list

	mu     sync.Mutex
	queue  []*call[T]
	ring   chan struct{}
	closed bool
	idle   chan struct{} // closed when the goroutine has ended
}

// call is one caller's work.
type call[T any] struct {
	work   T
	weight int
	ctx    context.Context //nolint:containedctx // of the caller, who may give up
	done   chan error
}

func newGroup[T any](db *DB, most int, all func(ctx context.Context, list []*call[T])) *group[T] {
	g := &group[T]{db: db, most: most, all: all, ring: make(chan struct{}, 1), idle: make(chan struct{})}
	db.parts.Go(func() { g.run(db.life) })
	return g
}

// do returns when the work is committed or has failed. A call whose transaction has not begun is
// taken back when ctx ends, or after Options.Timeout. Once it has begun, do waits for it, because
// nobody else could tell its outcome.
func (g *group[T]) do(ctx context.Context, work T, weight int) error {
	c := &call[T]{work: work, weight: weight, ctx: ctx, done: make(chan error, 1)}
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return holdfast.ErrClosed
	}
	g.queue = append(g.queue, c)
	g.mu.Unlock()
	g.signal()
	turn := time.NewTimer(g.db.opts.Timeout)
	defer turn.Stop()
	var late error
	select {
	case err := <-c.done:
		return err
	case <-ctx.Done():
		late = ctx.Err()
	case <-turn.C:
		late = errTurn
	}
	if g.takeBack(c) {
		return late
	}
	return <-c.done
}

// asideMost bounds the calls that wait at once for locks of others. Each of them holds a connection
// meanwhile.
const asideMost = 2

// byThemselves writes each call in a separate transaction, beside the group: one of them may have
// to wait for a caller's transaction, and the others must not wait with it. A call that cannot
// begin in time gets an error.
func byThemselves[T any](db *DB, list []*call[T], all func(ctx context.Context, list []*call[T])) {
	for _, c := range list {
		db.parts.Go(func() {
			turn := time.NewTimer(db.opts.Timeout)
			defer turn.Stop()
			select {
			case db.aside <- struct{}{}:
				defer func() { <-db.aside }()
				all(db.life, []*call[T]{c})
			case <-c.ctx.Done():
				c.done <- c.ctx.Err()
			case <-db.life.Done():
				c.done <- holdfast.ErrClosed
			case <-turn.C:
				c.done <- errTurn
			}
		})
	}
}

var errTurn = fmt.Errorf("%w: PostgreSQL is too slow, or not available: the call did not begin in time", holdfast.ErrUnavailable)

func (g *group[T]) takeBack(c *call[T]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, q := range g.queue {
		if q == c {
			g.queue = append(g.queue[:i:i], g.queue[i+1:]...)
			return true
		}
	}
	return false
}

func (g *group[T]) run(ctx context.Context) {
	defer close(g.idle)
	for {
		list, closed := g.take()
		if len(list) > 0 {
			g.all(ctx, list)
			g.linger(len(list))
			continue
		}
		if closed {
			return
		}
		<-g.ring
	}
}

// lingerMost bounds the wait for callers that were just answered.
const lingerMost = 200 * time.Microsecond

// linger gives callers that were just answered a moment to call again. They then share a
// transaction with the calls that came meanwhile, instead of taking turns with them. It does not
// wait if nothing is queued or only one call was answered.
func (g *group[T]) linger(answered int) {
	g.mu.Lock()
	waiting := len(g.queue)
	g.mu.Unlock()
	if waiting == 0 || answered < 2 {
		return
	}
	timer := time.NewTimer(lingerMost)
	defer timer.Stop()
	for here := waiting; here < waiting+answered; {
		select {
		case <-timer.C:
			return
		case <-g.ring:
		}
		g.mu.Lock()
		here = len(g.queue)
		closed := g.closed
		g.mu.Unlock()
		if closed {
			return
		}
	}
}

// take removes queued calls, as many as fit into one transaction.
func (g *group[T]) take() (list []*call[T], closed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n, weight := 0, 0
	for n < len(g.queue) && (n == 0 || weight+g.queue[n].weight <= g.most) {
		weight += g.queue[n].weight
		n++
	}
	list = g.queue[:n:n]
	g.queue = g.queue[n:]
	if len(g.queue) == 0 {
		g.queue = nil
	}
	return list, g.closed
}

func (g *group[T]) signal() {
	select {
	case g.ring <- struct{}{}:
	default:
	}
}

// stop finishes the queued calls and accepts no more.
func (g *group[T]) stop() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.signal()
	<-g.idle
}
