package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// How often an attached store does three things: it looks for commits of other connections, it
// contends for the ownership of the file, and, if it is not the owner, it counts again.
const (
	lookEvery  = 100 * time.Millisecond
	adoptEvery = time.Second
	countEvery = 5 * time.Second
)

// holdFor is how long the writer keeps a connection of the caller's pool while work waits. Then it
// returns the connection and takes the next.
const holdFor = 5 * time.Millisecond

// attached is the additional state of a store in the caller's database.
type attached struct {
	handle   *sql.DB
	prepared []*sql.Stmt
	look     time.Duration
	seen     seen // belongs to the writer
	// The gauges include no inbox row up to this one yet; see countInbox.
	uncounted int64
	names     *names                 // of committed rows, for the caller's transactions
	wanted    *ownership             // shows that this process wants the file; nil: it does not want it
	holder    atomic.Pointer[string] // the process that owns the file, if it is another one
	stop      context.CancelFunc
	done      chan struct{}
}

// Attach puts the outbox and the inbox into the caller's own database, so that a message commits
// together with the caller's rows (OI-01). The tables have the prefix hf_ and stand beside the
// caller's. Attach uses the caller's handle and driver, and keeps no connection of the handle. The
// database needs journal_mode=WAL, and synchronous=FULL or EXTRA on each connection that writes
// messages. Options.Normal lowers the second condition.
//
// Several processes may attach to one file. The process that holds the lock on the file beside it
// (its name and .lock) owns it. The owner claims, settles, expires and purges; all processes
// enqueue and process. A process without a dispatcher gives the file to a process with one, within
// about two seconds. Of several dispatchers the first keeps it. When the owner is gone, another
// process takes over within a second. DB.Owner names the owner if it is another process.
//
// The handle remains the caller's: close the DB first, then the handle. ErrOwned means that a node
// owns the whole file. ErrNotDurable and ErrNewer mean the same as for Open. After these errors
// nothing was changed.
func Attach(ctx context.Context, handle *sql.DB, o Options) (*DB, error) {
	o = o.withDefaults()
	db := newDB(o)
	db.attached = &attached{handle: handle, look: o.look, names: newNames(), done: make(chan struct{})}
	db.readers = handle
	close(db.background)
	if err := db.attach(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("attach: %w", translate(err)), db.release())
	}
	return db, nil
}

func (db *DB) attach(ctx context.Context) error {
	via, err := db.attached.handle.Conn(ctx)
	if err != nil {
		return fmt.Errorf("take a connection: %w", err)
	}
	s := &shared{via: via, patience: db.opts.TurnWait}
	c := &conn{s}
	db.writer = newWriter(db, c)
	owned, err := db.settleIn(c)
	s.via = nil
	if err := errors.Join(err, via.Close()); err != nil {
		return err
	}
	if err := db.attached.prepare(ctx); err != nil {
		return err
	}
	s.prepared = db.attached.prepared
	if owned {
		db.log.InfoContext(ctx, "attached as the owner", slog.String("path", db.path))
	} else {
		db.log.InfoContext(ctx, "attached; another process owns the file", slog.String("path", db.path), slog.String("owner", db.Owner()))
	}
	go db.writer.run()
	db.carryOutAtStart(ctx)
	if err := db.countInbox(ctx); err != nil {
		db.writer.close()
		return err
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	db.attached.stop = stop
	go db.watchOthers(watching)
	return nil
}

// settleIn checks whether the database can keep messages, makes the tables, and becomes the owner
// unless another process is.
func (db *DB) settleIn(c *conn) (owned bool, err error) {
	if db.path, err = mainFile(c); err != nil {
		return false, err
	}
	if err := soleName(db.path); err != nil {
		return false, err
	}
	db.room.beside(db.path, &db.opts)
	if err := checkVersions(c); err != nil {
		return false, err
	}
	if err := db.checkMoved(c); err != nil {
		return false, err
	}
	if mode, err := c.pragma("PRAGMA journal_mode"); err != nil {
		return false, err
	} else if mode != "wal" {
		return false, fmt.Errorf("%w: journal_mode is %q; set it to WAL once for the file, or for each connection in the data source name "+
			"(modernc: ?_pragma=journal_mode(WAL), mattn: ?_journal_mode=WAL)", ErrNotDurable, mode)
	}
	if err := db.checkDurable(c); err != nil {
		return false, err
	}
	if db.owner, err = own(db.path + ".lock"); err != nil && !errors.Is(err, ErrOwned) {
		return false, err
	}
	owned = err == nil
	if !owned {
		db.noteHolder()
		if alone, err := db.hasSoleOwner(c); err != nil || alone {
			return false, errors.Join(err, fmt.Errorf("%w: a node has %s for itself; attach to a database of your own", ErrOwned, db.path))
		}
	}
	if err := migrate(c); err != nil {
		return false, err
	}
	return owned, db.enterFile(c, owned)
}

// enterFile reads what the file holds, as its owner or beside the owner.
func (db *DB) enterFile(c *conn, owned bool) error {
	if owned {
		if err := db.takeOver(c); err != nil {
			return err
		}
	} else {
		last, err := db.lastNoted(c)
		if err != nil {
			return err
		}
		db.clock = newClock(last, &db.opts)
	}
	// Both are read from one snapshot, so that each later commit is seen once.
	s := c.runner.(*shared)
	if err := s.beginRead(); err != nil {
		return err
	}
	defer s.rollback()
	a := db.attached
	if err := a.seen.read(c); err != nil {
		return err
	}
	if err := db.seed(c); err != nil {
		return err
	}
	a.uncounted = a.seen.inbox
	db.inboxSize.Store(0)
	db.keptSize.Store(0)
	db.owns.Store(owned) // last: it stays false after an error
	return nil
}

// mainFile is the path of the caller's database.
func mainFile(c *conn) (string, error) {
	var path string
	if err := c.rows("PRAGMA database_list", func(v []driver.Value) error {
		if asText(v[1]) == "main" {
			path = asText(v[2])
		}
		return nil
	}); err != nil {
		return "", err
	}
	if path == "" {
		return "", fmt.Errorf("%w: the database is in memory or temporary; use a file", ErrNotDurable)
	}
	if to, err := filepath.EvalSymlinks(path); err == nil {
		path = to // one lock, even if a file has two names
	}
	return path, nil
}

// checkDurable refuses a connection that would not sync its commits. Each connection of a pool has
// its own setting.
func (db *DB) checkDurable(c *conn) error {
	if db.opts.Normal {
		return nil
	}
	level, err := c.pragma("PRAGMA synchronous")
	if err != nil {
		return err
	}
	return db.durable(level)
}

// durable refuses a level of PRAGMA synchronous that loses commits.
func (db *DB) durable(level string) error {
	if !db.opts.Normal && level != "2" && level != "3" {
		return fmt.Errorf("%w: synchronous is %s on a connection of the handle, which loses the last commits at a power cut; open the handle with "+
			"synchronous FULL (modernc: ?_pragma=synchronous(FULL), mattn: ?_synchronous=FULL), or set Options.Normal", ErrNotDurable, level)
	}
	return nil
}

func (db *DB) hasSoleOwner(c *conn) (bool, error) {
	if v, err := schemaVersion(c); err != nil || v == 0 {
		return false, err
	}
	n, err := c.meta(metaExclusive)
	return n == 1, err
}

// prepare prepares the statements for all connections of the pool. The caller must not hold a
// connection, since the pool may have only one.
func (a *attached) prepare(ctx context.Context) error {
	a.prepared = make([]*sql.Stmt, len(statements))
	for id := beginProbe; int(id) < len(statements); id++ {
		var err error
		if a.prepared[id], err = a.handle.PrepareContext(ctx, statements[id]); err != nil { //nolint:sqlclosecheck // detach does
			return fmt.Errorf("prepare %q: %w", statements[id], err)
		}
	}
	return nil
}

// acquire takes a connection of the caller's pool for the writer. In a file of its own, the store
// has a connection already.
func (w *writer) acquire() error {
	a := w.db.attached
	if a == nil {
		return nil
	}
	s := w.conn.runner.(*shared)
	if s.via != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), w.db.opts.TurnWait)
	defer cancel()
	via, err := a.handle.Conn(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no connection of the handle's pool came free in %s; inside a transaction of your own, use In", w.db.opts.TurnWait)
	}
	if err != nil {
		return fmt.Errorf("take a connection: %w", err)
	}
	s.via = via
	if err := w.db.checkDurable(w.conn); err != nil {
		w.giveBack()
		return err
	}
	w.held = time.Now()
	return nil
}

// giveBack returns the connection to the caller's pool.
func (w *writer) giveBack() {
	if w.db.attached == nil {
		return
	}
	s := w.conn.runner.(*shared)
	if s.via == nil {
		return
	}
	_ = s.via.Close() // returns it to the pool
	s.via = nil
}

// watchOthers looks for commits of other connections, and contends for the ownership of the file.
func (db *DB) watchOthers(ctx context.Context) {
	defer close(db.attached.done)
	look := time.NewTicker(db.attached.look)
	defer look.Stop()
	var contend, count time.Duration
	dispatches := false
	said := "" // the last fault that was logged: each is logged once, not ten times a second
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		err := db.writer.inspect(ctx, func(*conn) error { return nil })
		if err == nil {
			err = db.carryOut(ctx)
		}
		contend, count = contend+db.attached.look, count+db.attached.look
		if now := db.lanes.dispatches(); now != dispatches {
			dispatches, contend = now, adoptEvery // at once
		}
		if err == nil && contend >= adoptEvery {
			contend, err = 0, db.contend(ctx, dispatches)
		}
		if err == nil && count >= countEvery && !db.owns.Load() {
			count, err = 0, db.writer.inspect(ctx, db.seed)
		}
		switch {
		case err == nil:
			said = ""
		case ctx.Err() == nil && !errors.Is(err, holdfast.ErrClosed) && !isBusy(err) && err.Error() != said:
			said = err.Error()
			db.log.ErrorContext(ctx, "look for commits of others", slog.Any("error", err))
		}
	}
}

// detach ends what Attach began. The handle stays open.
func (a *attached) detach() error {
	var faults []error
	for _, s := range a.prepared {
		if s != nil {
			faults = append(faults, s.Close())
		}
	}
	return errors.Join(append(faults, a.wanted.release())...)
}

func (a *attached) stopWatching() {
	if a.stop != nil {
		a.stop()
		<-a.done
	}
}
