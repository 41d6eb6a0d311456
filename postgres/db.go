package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/follow"
	"github.com/holdfast-mq/holdfast/notify"
)

// DB is an outbox and an inbox in a PostgreSQL database. Its methods may be called concurrently.
// After Close they return holdfast.ErrClosed.
type DB struct {
	opts   Options
	log    *slog.Logger
	dsn    string
	pools  pools
	outage outage
	names  *names
	past   *past
	self   *self
	clock  *clock
	tally  *counters
	wakes  *wakes
	claim  claims
	sweeps sweeps

	enqueues *group[*enqueue]
	settles  *group[*settle]
	bundles  *group[*bundling]
	reached  *group[*reached]
	inbound  inbound

	received, duplicates atomic.Int64

	following follow.Running // followers of the journal in this process

	life    context.Context //nolint:containedctx // of background work, until Close
	cancel  context.CancelFunc
	parts   sync.WaitGroup
	failed  chan struct{}
	aside   chan struct{} // slots for calls that wait by themselves: tx_group.go
	failure atomic.Pointer[error]
	closing sync.Once
	gone    atomic.Bool
	full    atomic.Bool // the server has reported a full disk
}

var (
	_ holdfast.Shared    = (*DB)(nil)
	_ holdfast.Outbox    = (*DB)(nil)
	_ holdfast.Lanes     = (*DB)(nil)
	_ holdfast.Sweepable = (*DB)(nil)
	_ holdfast.Doubting  = (*DB)(nil)
	_ holdfast.InboxLog  = (*DB)(nil)
	_ notify.Store       = (*DB)(nil)
)

// Open connects to the database, migrates its tables to this release, and takes a lease for this
// node.
func Open(ctx context.Context, dsn string, o Options) (*DB, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	db := &DB{opts: o, outage: outage{patience: o.Timeout / 2}, log: o.Logger, dsn: dsn, names: newNames(), failed: make(chan struct{}), aside: make(chan struct{}, asideMost), wakes: newWakes(), tally: newCounters()}
	db.self, db.clock = newSelf(db), newClock(o.ClockHold)
	db.past = newPast(db.forgetHistory)
	db.past.away = db.stallsAfter()
	if db.pools, err = openPools(ctx, dsn, &o, db.past); err != nil {
		return nil, fmt.Errorf("open database: %w", explain(err))
	}
	db.life, db.cancel = context.WithCancel(context.WithoutCancel(ctx))
	wanted := context.AfterFunc(ctx, db.giveUpSoon)
	defer wanted()
	defer db.tellHanging()()
	err = db.start(entering(ctx))
	if err == nil && !wanted() { // ctx ended at the last moment
		err = ctx.Err()
	}
	if err != nil {
		if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) {
			err = fmt.Errorf("%w: %s", ended, err.Error())
		}
		return nil, errors.Join(fmt.Errorf("open database: %w", explain(err)), db.Close())
	}
	return db, nil
}

func (db *DB) start(ctx context.Context) error {
	if list := hosts(db.pools.own.Config().ConnConfig); len(list) > 1 {
		db.lookAround(ctx, list)
	}
	if err := db.vet(ctx); err != nil {
		return err
	}
	if err := db.migrate(ctx); err != nil {
		return err
	}
	if err := db.renumber(ctx); err != nil {
		return err
	}
	if _, err := db.lookBack(ctx); err != nil {
		return err
	}
	if err := db.tickClock(ctx); err != nil { // first: leases depend on it
		return err
	}
	if err := db.enter(ctx); err != nil {
		return err
	}
	if err := db.count(ctx); err != nil {
		return err
	}
	db.enqueues = newGroup(db, enqueueMost, db.enqueueAll)
	db.settles = newGroup(db, settleMost, db.settleAll)
	db.bundles = newGroup(db, enqueueMost, db.bundleAll)
	db.reached = newGroup(db, reachedMost, db.reachedAll)
	db.inbound.arrivals = newGroup(db, arriveMost, db.arriveAll)
	for _, part := range []func(ctx context.Context){db.beatOn, db.listenOn, db.notifyOn, db.watchPrimaries} {
		db.parts.Go(func() { part(db.life) })
	}
	select {
	case <-db.wakes.heard:
	case <-time.After(connectTimeout): // the node polls meanwhile
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// Close gives back the claimed messages, ends the lease, so that other nodes need not wait for it,
// and disconnects.
func (db *DB) Close() error {
	var err error
	db.closing.Do(func() {
		db.gone.Store(true)
		db.stopGroups()
		err = db.leave()
		db.cancel()
		db.parts.Wait()
		db.disconnect()
	})
	return err
}

// lastRequests is how long a store that was given up waits until its cancel requests have been
// sent.
const lastRequests = 100 * time.Millisecond

// disconnect closes all connections. Once the store is given up, it does not wait for them to
// close: for each that hangs, a cancel request is under way on a new connection, and a busy server
// takes seconds to answer it.
func (db *DB) disconnect() {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		db.pools.close()
	}()
	select {
	case <-closed:
		return
	case <-db.past.patience.Done():
	}
	select {
	case <-closed:
	case <-time.After(lastRequests):
	}
}

// GiveUp aborts all waiting for the database. Commits that hang end with ErrUnknown, unless their
// outcome can be found out at once. Later calls return holdfast.ErrUnavailable. It is for a process
// whose time to stop is over while the database hangs (see Hangs). Call it before Close, or while
// Close waits.
func (db *DB) GiveUp() { db.past.giveUp(errGivenUp) }

// goodbyeMost is how long a start that was told to stop may take to give its name back.
const goodbyeMost = time.Second

// giveUpSoon ends a start whose ctx has ended. If the database answers, the node first gives up its
// lease; otherwise the next start would have to wait for that lease to end. It waits for nothing
// else.
func (db *DB) giveUpSoon() {
	if pause(db.life, goodbyeMost) == nil {
		db.GiveUp()
	}
}

// stopGroups writes what is waiting in the groups, and stops them.
func (db *DB) stopGroups() {
	if db.enqueues == nil { // the start failed before
		return
	}
	db.enqueues.stop()
	db.bundles.stop()
	db.reached.stop()
	db.settles.stop()
	db.inbound.arrivals.stop()
}

// usable refuses calls after Close, calls inside a transaction of the same store, and calls whose
// ctx has ended.
func (db *DB) usable(ctx context.Context) error {
	switch {
	case db.gone.Load():
		return holdfast.ErrClosed
	case db.within(ctx):
		return holdfast.ErrNested
	case db.Err() != nil:
		return fmt.Errorf("%w: %w", holdfast.ErrClosed, db.Err())
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return db.awake(ctx)
}

// insideKey marks a context that was passed to the function of Do, or to a handler.
type insideKey struct{ db *DB }

func (db *DB) within(ctx context.Context) bool { return ctx.Value(insideKey{db}) != nil }

// Durability names how safe an acknowledged message is, for health reports.
func (db *DB) Durability() string { return "full" }

// Failed returns a channel that is closed when the store has stopped itself.
func (db *DB) Failed() <-chan struct{} { return db.failed }

// Err returns why the store has stopped itself, or nil if it has not. An unreachable database stops
// nothing: calls fail until it can be reached again.
func (db *DB) Err() error {
	if e := db.failure.Load(); e != nil {
		return *e
	}
	return nil
}
