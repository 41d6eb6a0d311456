package sqlite

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Limits of one group commit. They keep a transaction short, and so the wait of the next caller.
const (
	groupItems = 2048
	groupBytes = 4 << 20
)

// work is what a caller gives the writer to do.
type work interface {
	// apply runs inside a transaction, which it may share with other works. A conflict that
	// concerns only this caller is kept for the caller and is no error. Any error undoes the
	// transaction; then each of its works runs again in its own transaction. So apply must start
	// afresh each time.
	apply(tx *writeTx) error
	// size returns how much of a group this work takes.
	size() (items, bytes int)
}

// job is a work on its way through the writer.
type job struct {
	work    work
	turn    *turn // in place of work: the caller has the connection alone
	read    func(c *conn) error
	bare    bool // read makes its own transactions
	patient bool // waits for company: see along
	state   atomic.Int32
	err     error
	done    chan struct{} // holds one signal
}

// take claims the job for the writer. It fails if the caller has given up.
func (j *job) take() bool { return j.state.CompareAndSwap(jobQueued, jobTaken) }

// waits reports whether the job is neither taken nor withdrawn.
func (j *job) waits() bool { return j.state.Load() == jobQueued }

// withdraw gives the job up for the caller. It fails if the writer has taken it.
func (j *job) withdraw() bool { return j.state.CompareAndSwap(jobQueued, jobWithdrawn) }

const (
	jobQueued int32 = iota
	jobTaken
	jobWithdrawn
)

// turn lends the connection to a caller between two groups.
type turn struct{ back chan struct{} }

// writer owns the connection that writes. One goroutine runs it.
type writer struct {
	db   *DB
	conn *conn

	mu      sync.Mutex
	queue   []*job
	urgent  bool // a job of the queue does not wait for company
	closing bool
	fatal   error
	ring    chan struct{} // holds one signal: there is work
	ended   chan struct{}

	jobs      sync.Pool // of this writer only: a channel must not leave a test's time bubble
	born      time.Time
	held      time.Time    // since when the writer has the caller's connection: see attach.go
	turnSince atomic.Int64 // when the present turn began, in time since born; 0: no turn
	pace      time.Duration
	suspect   bool        // a sync failed: nothing is acknowledged before a full checkpoint
	doubted   atomic.Bool // a transaction of the caller has seen a sync fail
	strikes   int
	tx        writeTx

	writes, others []*job // reused in each round
}

func newWriter(db *DB, c *conn) *writer {
	return &writer{
		db: db, conn: c, born: time.Now(), ring: make(chan struct{}, 1), ended: make(chan struct{}),
		jobs: sync.Pool{New: func() any { return &job{done: make(chan struct{}, 1)} }},
	}
}

// do queues k and waits until it is durable or refused. If ctx ends first, do withdraws work that
// has not begun. It waits for work that has, so that the answer is never "perhaps".
func (w *writer) do(ctx context.Context, k work) error {
	j := w.jobs.Get().(*job)
	j.work = k
	return w.await(ctx, j)
}

// company is how long a work that is in no hurry waits for others to share their transaction.
const company = 20 * time.Millisecond

// along is do for a work that is in no hurry. It shares the next transaction of others, so that it
// costs no sync of its own. If there is none for a while, it gets its own.
func (w *writer) along(ctx context.Context, k work) error {
	j := w.jobs.Get().(*job)
	j.work, j.patient = k, true
	alone := time.AfterFunc(company, w.hurry)
	defer alone.Stop()
	return w.await(ctx, j)
}

// hurry makes the writer do what is queued.
func (w *writer) hurry() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) > 0 && !w.urgent {
		w.urgent = true
		w.signal()
	}
}

func (w *writer) signal() {
	select {
	case w.ring <- struct{}{}:
	default:
	}
}

// inspect runs read on the writer's connection, between transactions, where it sees everything that
// has been settled.
func (w *writer) inspect(ctx context.Context, read func(c *conn) error) error {
	j := w.jobs.Get().(*job)
	j.read = read
	return w.await(ctx, j)
}

// bare is inspect for a function that makes its own transactions.
func (w *writer) bare(ctx context.Context, f func(c *conn) error) error {
	j := w.jobs.Get().(*job)
	j.read, j.bare = f, true
	return w.await(ctx, j)
}

func (w *writer) await(ctx context.Context, j *job) error {
	if w.db.within(ctx) {
		return holdfast.ErrNested
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := w.push(j); err != nil {
		return err
	}
	patience := time.NewTimer(w.db.opts.TurnWait)
	defer patience.Stop()
	gone := ctx.Done()
	for {
		select {
		case <-j.done:
			err := j.err
			*j = job{done: j.done}
			w.jobs.Put(j)
			return err
		case <-gone:
			if j.withdraw() {
				return ctx.Err()
			}
			gone = nil
		case <-patience.C:
			// A handler that waits for the outbox in which it runs would wait for ever.
			held := w.turnHeld()
			if held >= w.db.opts.TurnWait && j.withdraw() {
				return fmt.Errorf("wait for the writer: a transaction has held it for %s: %w", held.Round(time.Millisecond), holdfast.ErrNested)
			}
			patience.Reset(w.db.opts.TurnWait - min(held, w.db.opts.TurnWait-time.Millisecond))
		}
	}
}

// turnHeld returns how long a caller has had the connection; 0: none has it.
func (w *writer) turnHeld() time.Duration {
	began := w.turnSince.Load()
	if began == 0 {
		return 0
	}
	return time.Since(w.born) - time.Duration(began)
}

func (w *writer) push(j *job) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closing {
		return w.closedError()
	}
	w.queue = append(w.queue, j)
	if !j.patient && !w.urgent {
		w.urgent = true
		w.signal()
	}
	return nil
}

// usable fails inside a transaction of the store, and after the store has stopped taking work.
func (w *writer) usable(ctx context.Context) error {
	if w.db.within(ctx) {
		return holdfast.ErrNested
	}
	return w.takes()
}

// takes fails after the store has stopped taking work.
func (w *writer) takes() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closing {
		return w.closedError()
	}
	return nil
}

// stopped is closedError for other goroutines than the writer's.
func (w *writer) stopped() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closedError()
}

func (w *writer) closedError() error {
	if w.fatal != nil {
		return fmt.Errorf("%w: %w", holdfast.ErrClosed, w.fatal)
	}
	return holdfast.ErrClosed
}

// close refuses new work, finishes waiting work, and returns.
func (w *writer) close() {
	w.mu.Lock()
	w.closing = true
	w.mu.Unlock()
	w.signal()
	<-w.ended
}

func (w *writer) run() {
	defer close(w.ended)
	for {
		group, more, closing := w.take()
		if len(group) == 0 {
			w.giveBack()
			if closing {
				return
			}
			<-w.ring
			continue
		}
		if err := w.acquire(); err != nil {
			refuse(group, translate(err))
			continue
		}
		w.round(group)
		if !more || time.Since(w.held) > holdFor {
			w.giveBack()
		}
		if !more && !closing {
			w.linger()
		}
	}
}

// take removes the next group from the queue. It leaves jobs that wait for company.
func (w *writer) take() (group []*job, more, closing bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.urgent && !w.closing {
		return nil, false, false
	}
	items, bytes, n := 0, 0, 0
	for n < len(w.queue) && items < groupItems && bytes < groupBytes {
		if k := w.queue[n].work; k != nil {
			i, b := k.size()
			items, bytes = items+i, bytes+b
		}
		n++
	}
	group = w.queue[:n:n]
	w.queue = w.queue[n:]
	if w.urgent = len(w.queue) > 0; !w.urgent {
		w.queue = nil
	}
	return group, w.urgent, w.closing
}

// linger waits a little before the next group if commits are slow, so that callers who were just
// answered can join it. At 5 ms a sync that brings half as much again. If commits are faster, a
// sleep costs more than it brings.
func (w *writer) linger() {
	if w.pace < 2*time.Millisecond {
		return
	}
	t := time.NewTimer(w.pace / 20)
	defer t.Stop()
	<-t.C
}

// round commits a group, then serves the jobs that need the connection between transactions.
func (w *writer) round(group []*job) {
	writes, others := w.writes[:0], w.others[:0]
	for _, j := range group {
		if j.work == nil {
			others = append(others, j)
		} else {
			writes = append(writes, j)
		}
	}
	if writes = w.admitted(writes); len(writes) > 0 {
		w.commit(writes)
	}
	w.unused()
	for _, j := range others {
		if j.turn != nil && len(w.admitted([]*job{j})) > 0 {
			w.lend(j)
			w.unused()
			continue
		}
		switch {
		case j.turn != nil: // the caller has given up, or has its answer
		case !j.take(): // callers can give up during another's turn
		default:
			finish(j, w.look(j))
		}
	}
	clear(writes) // a finished job belongs to its caller again
	clear(others)
	w.writes, w.others = writes, others
}

// admitted gets the right to write and then takes the jobs that still wait. Until then their
// callers can give up.
func (w *writer) admitted(jobs []*job) []*job {
	if s, ok := w.conn.runner.(*shared); ok && len(jobs) > 0 && !w.suspect && !w.doubted.Load() && w.fatal == nil {
		err := s.beginAhead(func() bool { return slices.ContainsFunc(jobs, (*job).waits) })
		if err != nil {
			refuse(jobs, w.judge(fmt.Errorf("begin: %w", err)))
			return nil
		}
	}
	if jobs = slices.DeleteFunc(jobs, func(j *job) bool { return !j.take() }); len(jobs) == 0 {
		w.unused()
	}
	return jobs
}

// unused gives the right to write back if nobody has used it.
func (w *writer) unused() {
	if s, ok := w.conn.runner.(*shared); ok {
		s.unused()
	}
}

// refuse ends the jobs of a group that cannot begin.
func refuse(group []*job, err error) {
	for _, j := range group {
		if j.take() {
			finish(j, err)
		}
	}
}

// look lets a job read between two transactions. In the caller's database the job reads one
// snapshot, up to which memory knows the file.
func (w *writer) look(j *job) error {
	if w.fatal != nil {
		return w.closedError()
	}
	if s, ok := w.conn.runner.(*shared); ok && !j.bare {
		if err := s.beginRead(); err != nil {
			return translate(err)
		}
		defer s.rollback()
		if err := w.db.enter(w.conn); err != nil {
			return translate(err)
		}
	}
	err := translate(j.read(w.conn))
	w.db.damaged(err)
	return err
}

func (w *writer) lend(j *job) {
	t := j.turn
	w.turnSince.Store(int64(time.Since(w.born)) | 1)
	finish(j, nil)
	<-t.back
	w.turnSince.Store(0)
}
