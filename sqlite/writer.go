package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Bounds of one group commit. They keep a single transaction, and with it
// the wait of whoever comes next, short.
const (
	groupItems = 2048
	groupBytes = 4 << 20
)

// work is what a caller hands to the writer.
type work interface {
	// apply runs inside a transaction, which it may share with others. A
	// conflict that concerns only this caller is kept for the caller and is no
	// error; any error undoes the transaction, and then every work of it runs
	// again in a transaction of its own. So apply starts afresh each time.
	apply(tx *writeTx) error
	// size says how much of a group this work takes.
	size() (items, bytes int)
}

// job is work on its way through the writer.
type job struct {
	work  work
	turn  *turn // instead of work: the caller has the connection to itself
	read  func(c *conn) error
	state atomic.Int32
	err   error
	done  chan struct{} // of one
}

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
	closing bool
	fatal   error
	ring    chan struct{} // of one: there is work
	ended   chan struct{}

	jobs      sync.Pool    // of this writer alone: a channel must not cross a test's time bubble
	turnSince atomic.Int64 // when the present turn began, 0 without one
	pace      time.Duration
	suspect   bool // a sync failed: nothing is acknowledged before a full checkpoint
	strikes   int
	tx        writeTx

	writes, others []*job // reused from round to round
}

func newWriter(db *DB, c *conn) *writer {
	return &writer{
		db: db, conn: c, ring: make(chan struct{}, 1), ended: make(chan struct{}),
		jobs: sync.Pool{New: func() any { return &job{done: make(chan struct{}, 1)} }},
	}
}

// do queues w and waits until it is durable or refused. When ctx ends first,
// work that has not been begun is withdrawn; work that has been is waited
// for, so that the answer is never "perhaps".
func (w *writer) do(ctx context.Context, k work) error {
	j := w.jobs.Get().(*job)
	j.work = k
	return w.await(ctx, j)
}

// inspect runs read on the writer's connection, between transactions, where
// it sees everything that has been settled.
func (w *writer) inspect(ctx context.Context, read func(c *conn) error) error {
	j := w.jobs.Get().(*job)
	j.read = read
	return w.await(ctx, j)
}

func (w *writer) await(ctx context.Context, j *job) error {
	if err := w.push(j); err != nil {
		return err
	}
	for {
		patience := time.NewTimer(w.db.opts.TurnWait)
		select {
		case <-j.done:
			patience.Stop()
			err := j.err
			*j = job{done: j.done}
			w.jobs.Put(j)
			return err
		case <-ctx.Done():
			patience.Stop()
			if j.state.CompareAndSwap(jobQueued, jobWithdrawn) {
				return ctx.Err()
			}
			ctx = context.WithoutCancel(ctx)
		case <-patience.C:
			// A handler that waits for the outbox it runs in would wait for ever.
			if w.turnSince.Load() != 0 && j.state.CompareAndSwap(jobQueued, jobWithdrawn) {
				return fmt.Errorf("wait for the writer: a transaction has held it for %s: %w", w.db.opts.TurnWait, holdfast.ErrNested)
			}
		}
	}
}

func (w *writer) push(j *job) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closing {
		return w.closedError()
	}
	w.queue = append(w.queue, j)
	if len(w.queue) == 1 {
		select {
		case w.ring <- struct{}{}:
		default:
		}
	}
	return nil
}

func (w *writer) closedError() error {
	if w.fatal != nil {
		return fmt.Errorf("%w: %w", holdfast.ErrClosed, w.fatal)
	}
	return holdfast.ErrClosed
}

// close refuses new work, finishes what waits, and returns.
func (w *writer) close() {
	w.mu.Lock()
	w.closing = true
	w.mu.Unlock()
	select {
	case w.ring <- struct{}{}:
	default:
	}
	<-w.ended
}

func (w *writer) run() {
	defer close(w.ended)
	for {
		group, more, closing := w.take()
		if len(group) == 0 {
			if closing {
				return
			}
			<-w.ring
			continue
		}
		w.round(group)
		if !more && !closing {
			w.linger()
		}
	}
}

// take removes the next group from the queue.
func (w *writer) take() (group []*job, more, closing bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
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
	if len(w.queue) == 0 {
		w.queue = nil
	}
	return group, len(w.queue) > 0, w.closing
}

// linger waits a little before the next group where commits are slow, so
// that callers who were just answered can join it: at 5 ms a sync it is worth
// half as much again. Faster than that, a sleep costs more than it brings.
func (w *writer) linger() {
	if w.pace < 2*time.Millisecond {
		return
	}
	t := time.NewTimer(w.pace / 20)
	defer t.Stop()
	<-t.C
}

// round commits a group, then serves those who need the connection between
// transactions.
func (w *writer) round(group []*job) {
	writes, others := w.writes[:0], w.others[:0]
	for _, j := range group {
		switch {
		case !j.state.CompareAndSwap(jobQueued, jobTaken):
		case j.work != nil:
			writes = append(writes, j)
		default:
			others = append(others, j)
		}
	}
	if len(writes) > 0 {
		w.commit(writes)
	}
	for _, j := range others {
		if j.turn != nil {
			w.lend(j)
			continue
		}
		finish(j, j.read(w.conn))
	}
	clear(writes) // a finished job belongs to its waiter again
	clear(others)
	w.writes, w.others = writes, others
}

func (w *writer) lend(j *job) {
	t := j.turn
	w.turnSince.Store(time.Now().UnixNano() | 1)
	j.done <- struct{}{}
	<-t.back
	w.turnSince.Store(0)
}

// commit writes the group in one transaction, or, if anything in it fails,
// each work in its own, so that nobody pays for another's fault.
func (w *writer) commit(group []*job) {
	if err := w.trusted(); err != nil {
		for _, j := range group {
			finish(j, err)
		}
		return
	}
	began := time.Now()
	if err := w.transact(group); err == nil {
		w.pace = (7*w.pace + time.Since(began)) / 8
		for _, j := range group {
			finish(j, nil)
		}
		return
	} else if len(group) == 1 {
		finish(group[0], w.judge(err))
		return
	}
	for i, j := range group {
		if err := w.trusted(); err != nil {
			for _, rest := range group[i:] {
				finish(rest, err)
			}
			return
		}
		finish(j, w.judge(w.transact(group[i:i+1])))
	}
}

func finish(j *job, err error) {
	j.err = err
	j.done <- struct{}{}
}

// transact runs the group in one transaction and publishes what it did to
// memory after the commit.
func (w *writer) transact(group []*job) (err error) {
	tx := &w.tx
	tx.begin(w)
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a transaction: %v", p)
		}
		if err != nil {
			tx.rollback()
		}
	}()
	if _, err := w.conn.exec(beginImmediate); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	if err := w.db.checkEpoch(w.conn); err != nil {
		return err
	}
	for _, j := range group {
		if err := j.work.apply(tx); err != nil {
			return err
		}
	}
	if err := w.saveClock(tx); err != nil {
		return err
	}
	if _, err := w.conn.exec(commitNow); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	tx.publish()
	return nil
}

// saveClock keeps the store's clock in the file now and then, for newClock.
func (w *writer) saveClock(tx *writeTx) error {
	const every = int64(time.Minute / time.Microsecond)
	if tx.now-w.db.clockSaved < every {
		return nil
	}
	w.db.clockSaved = tx.now
	_, err := w.conn.exec(setMeta, metaClock, tx.now)
	return err
}

// judge translates an error for the caller and notes what it says about the
// disk. After a failed sync the kernel may have dropped what it could not
// write, and a later sync would succeed without it.
func (w *writer) judge(err error) error {
	if err == nil {
		w.strikes = 0
		return nil
	}
	err = translate(err)
	if errors.Is(err, errIO) {
		w.suspect = true
		w.db.log.Error("write failed", slog.Any("error", err))
	}
	if errors.Is(err, errLostOwnership) {
		w.stop(err)
	}
	return err
}

// trusted says whether a commit would be believed: after a failed sync, only
// once a truncating checkpoint has rewritten everything.
func (w *writer) trusted() error {
	if w.fatal != nil {
		return w.closedError()
	}
	if !w.suspect {
		return nil
	}
	busy, err := w.conn.pragma("PRAGMA wal_checkpoint(TRUNCATE)")
	if err == nil && busy == "0" {
		w.suspect, w.strikes = false, 0
		w.db.log.Warn("disk answers again after a failed write")
		return nil
	}
	w.strikes++
	if err == nil {
		err = errors.New("a reader holds the file")
	}
	err = fmt.Errorf("checkpoint after a failed sync: %w", translate(err))
	if w.strikes >= maxStrikes {
		w.stop(err)
	}
	return err
}

// maxStrikes is how often in a row the disk may refuse before the store stops.
const maxStrikes = 8

// stop ends the store: nothing more is accepted, and DB.Failed tells.
func (w *writer) stop(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fatal != nil {
		return
	}
	w.fatal, w.closing = err, true
	w.db.log.Error("store stopped", slog.Any("error", err))
	close(w.db.failed)
}
