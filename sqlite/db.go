package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	moderncsqlite "modernc.org/sqlite"

	"github.com/holdfast-mq/holdfast"
)

// Options of Open and Attach. The zero value works.
type Options struct {
	// Source is stamped on messages that name none. Zero: the host's name. To
	// a receiver, source and id together are the message: give each sender a
	// name of its own, and keep it.
	Source string
	// Normal gives up the last commits at a power cut for fewer syncs. Health
	// reports it.
	Normal bool
	// TurnWait bounds the wait for a transaction of Do or a handler that does
	// not end. Zero: 30 s.
	TurnWait time.Duration
	// SaneAfter is the earliest time that a working clock shows; before it
	// nothing expires and nothing is deleted. Zero: 2020-01-01.
	SaneAfter time.Time
	// ClockHold is how long time that only the clock claims to have passed, as it
	// does at a start, is doubted at most: what would end because of it is held
	// meanwhile, neither delivered nor ended. DB.Doubt tells. Zero: a day.
	ClockHold time.Duration
	// Reserve is how many bytes of the disk are set aside in a file beside the
	// database, to record outcomes with when the disk is full. Zero: 16 MiB;
	// negative: none.
	Reserve int64
	// SalvageWait is how long Open waits for the salvage of a damaged file
	// before it goes on in the background. Zero: 20 s.
	SalvageWait time.Duration
	// Adopt takes over a copy that was made while the file was in use, which
	// Open refuses otherwise with ErrCopied. What the copy holds as waiting may
	// have been delivered by the original.
	Adopt    bool
	Observer holdfast.Observer
	Logger   *slog.Logger // zero: none

	copying bool                                   // a move goes on in it
	clock   reading                                // of the machine; tests set it
	look    time.Duration                          // lookEvery; tests set it
	connect func(name string) (driver.Conn, error) // of the driver; tests wrap it
	copier  func(dc driver.Conn, to string) (pageCopier, error)
	at      func(point string) // tells a test how far a backup is
}

func (o Options) withDefaults() Options {
	if o.Source == "" {
		o.Source = "$unknown-site" // SF-26
		if host, err := os.Hostname(); err == nil && host != "" {
			o.Source = host
		}
	}
	if o.TurnWait == 0 {
		o.TurnWait = 30 * time.Second
	}
	if o.SaneAfter.IsZero() {
		o.SaneAfter = saneAfter()
	}
	if o.look == 0 {
		o.look = lookEvery
	}
	if o.clock == nil {
		o.clock = machineClock()
	}
	if o.SalvageWait == 0 {
		o.SalvageWait = 20 * time.Second
	}
	if o.connect == nil {
		o.connect = (&moderncsqlite.Driver{}).Open
	}
	if o.copier == nil {
		o.copier = newPageCopier
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// DB is an outbox and an inbox in one SQLite file. Its methods may be called
// concurrently; after Close they return holdfast.ErrClosed.
type DB struct {
	path string
	opts Options
	log  *slog.Logger

	owner     *ownership
	epoch     int64
	taken     atomic.Int64 // no message gets a number up to here; 0: those of messages are higher
	schemaWas int          // number of the last migration that the file had
	owns      atomic.Bool  // false: beside the owner, in the caller's database
	clock     *clock
	handle    *sql.DB   // holds the writer's connection; nil in the caller's database
	lent      *sql.Conn // the same connection, for transactions of callers
	readers   *sql.DB
	prepared  prepared
	writer    *writer
	lanes     *lanes
	routes    map[routeKey]route   // the writer's
	names     map[int64]routeNames // the writer's
	sources   map[string]int64     // the writer's

	attached *attached // nil: the file is ours

	backups    *backups
	followers  *followers
	followed   atomic.Bool
	notify     atomic.Int64 // metaNotify
	sweeps     sweeps
	held       atomic.Int64 // messages that are, as the last scan has found
	marks      atomic.Bool  // people have decided about messages in hand, since the start
	decided    atomic.Bool  // decisions wait for the owner: carryOut
	heard      int64        // the event after which they are; the writer's
	clockSaved clockSaved   // the writer's
	failed     chan struct{}
	background chan struct{}   // closed when the seeding goroutine has ended
	life       context.Context //nolint:containedctx // of what runs in the background, until Close
	cancel     context.CancelFunc
	closing    sync.Once
	closed     error
	gone       atomic.Bool // Close has begun: readers get ErrClosed

	salvaging *salvage       // of a damaged file; nil: none
	guards    sync.WaitGroup // what salvages
	check     atomic.Pointer[IntegrityCheck]
	files     []openedFile

	full atomic.Int64 // when a write found no room, since the writer's birth; 0: never
	room room

	inboxSize, keptSize, received, duplicates atomic.Int64
}

var (
	_ holdfast.Store     = (*DB)(nil)
	_ holdfast.Outbox    = (*DB)(nil)
	_ holdfast.Lanes     = (*DB)(nil)
	_ holdfast.Owned     = (*DB)(nil)
	_ holdfast.Sweepable = (*DB)(nil)
	_ holdfast.InboxLog  = (*DB)(nil)
	_ holdfast.Doubting  = (*DB)(nil)
)

// Open opens or makes the file at path and becomes its owner. It returns when
// every message of the file can be claimed. ErrOwned, ErrNewer, ErrNotDurable,
// ErrCopied and ErrReadOnly say why it did not; then nothing was changed.
//
// A damaged file is set aside under another name, never deleted, and what can
// be read of it is salvaged into a new one: DB.Damage reports it. A file that
// also holds tables of the caller's is left as it is: ErrDamaged. Salvage that
// takes longer than Options.SalvageWait goes on while messages are delivered,
// and until it ends, nothing is accepted: ErrRecovering.
func Open(ctx context.Context, path string, o Options) (*DB, error) {
	o = o.withDefaults()
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("open %s: make its folder: %w", path, translate(err))
	}
	if to, err := filepath.EvalSymlinks(path); err == nil {
		path = to // two names of one file have one lock
	}
	if err := soleName(path); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	owner, err := own(path + ".lock")
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, translate(err))
	}
	db, err := openOwned(ctx, path, o, owner)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, translate(err)), owner.release())
	}
	db.owner = owner
	owner.noteOpened()
	return db, nil
}

// newOwned is a store of a file of its own, which has not been opened.
func newOwned(path string, o Options) *DB {
	db := newDB(o)
	db.path = path
	db.owns.Store(true)
	db.room.prepare(path, &o)
	return db
}

func newDB(o Options) *DB {
	db := &DB{
		opts: o, log: o.Logger, routes: map[routeKey]route{}, names: map[int64]routeNames{},
		sources: map[string]int64{}, failed: make(chan struct{}), background: make(chan struct{}), followers: newFollowers(),
	}
	db.lanes = newLanes(db)
	db.sweeps.asked.some.Store(true)
	db.backups = newBackups()
	return db
}

func (db *DB) open(ctx context.Context) error {
	if err := db.peek(); err != nil {
		return err
	}
	if err := db.makePrivate(); err != nil {
		return err
	}
	c, err := db.connect(ctx)
	if err != nil {
		return err
	}
	db.writer = newWriter(db, c)
	if err := db.configure(c); err != nil {
		return err
	}
	if db.room.shut.Load() {
		db.writer.restartLogWithReserve() // what the log takes on the disk can be used again
	}
	if db.schemaWas, err = schemaVersion(c); err != nil {
		return err
	}
	if err := migrate(c); err != nil {
		return err
	}
	if err := checkSchema(c); err != nil {
		return err
	}
	if err := db.takeOver(c); err != nil {
		return err
	}
	if db.lanes.careful > 0 {
		// What a process that was killed left at the end of the log must not lie
		// behind what comes: it would look like damage to suspicion.
		if _, err := c.pragma("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil && !errors.Is(db.room.explain(err), holdfast.ErrDiskFull) {
			return err
		}
	}
	if err := db.seed(c); err != nil {
		return err
	}
	if err := c.rows(queries[wrongNames], func(v []driver.Value) error { return wrongName(v[0], v[1]) }); err != nil {
		return err
	}
	// A reader never makes a file: where there is none, it was taken away.
	db.readers = sql.OpenDB(connector{db.opts.connect, dsn(db.path, "query_only(1)") + "&mode=rw"})
	db.readers.SetMaxOpenConns(4)
	db.readers.SetMaxIdleConns(4)
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	db.life, db.cancel = background, cancel
	if err := db.seedInbox(background); err != nil {
		return err
	}
	db.room.done = make(chan struct{})
	go db.watch(background)
	go db.writer.run()
	db.remember()
	db.carryOutAtStart(ctx)
	return nil
}

// dsn names the file with the pragmas that every connection needs. The busy
// time-out comes first: setting the journal mode can meet a lock.
func dsn(path string, more ...string) string {
	pragmas := append([]string{"busy_timeout(5000)"}, more...)
	pragmas = append(pragmas, "cache_size(-8000)", "foreign_keys(0)", "temp_store(memory)")
	return "file:" + escapePath(path) + "?_pragma=" + strings.Join(pragmas, "&_pragma=")
}

// peek refuses a file that is not for this release. It reads only: to close
// the last connection that may write would merge the log into the file.
func (db *DB) peek() (err error) {
	name := dsn(db.path) + "&mode=ro"
	if s, err := os.Stat(db.path); err != nil || s.Size() == 0 {
		name = ":memory:" // there is nothing to read yet, but SQLite has a version
	}
	if err = db.peekAt(name); mustRollBack(err) {
		err = db.peekAt(dsn(db.path))
	}
	return err
}

// connector makes database/sql use one driver, registered or not.
type connector struct {
	open func(name string) (driver.Conn, error)
	name string
}

func (c connector) Connect(context.Context) (driver.Conn, error) { return c.open(c.name) }
func (c connector) Driver() driver.Driver                        { return &moderncsqlite.Driver{} }

// connect opens the writer's connection, once through database/sql, so that
// callers' transactions can run on it, and takes hold of the driver's own
// connection for statements of ours.
func (db *DB) connect(ctx context.Context) (*conn, error) {
	db.handle = sql.OpenDB(connector{db.opts.connect, dsn(db.path) + "&_txlock=immediate"})
	db.handle.SetMaxOpenConns(1)
	db.handle.SetConnMaxIdleTime(0)
	db.handle.SetConnMaxLifetime(0)
	var err error
	if db.lent, err = db.handle.Conn(ctx); err != nil {
		return nil, err
	}
	d := &direct{via: db.lent}
	err = db.lent.Raw(func(raw any) error {
		dc, ok := raw.(driver.Conn)
		if !ok {
			return fmt.Errorf("driver connection is a %T", raw)
		}
		d.dc = dc
		return nil
	})
	return &conn{d}, err
}

// configure sets what makes a commit durable and reads it back.
func (db *DB) configure(c *conn) error {
	level, want := "FULL", "2"
	if db.opts.Normal {
		level, want = "NORMAL", "1"
	}
	for _, p := range []struct{ set, get, want string }{
		{"PRAGMA journal_mode = WAL", "PRAGMA journal_mode", "wal"},
		{"PRAGMA synchronous = " + level, "PRAGMA synchronous", want},
		{"PRAGMA wal_autocheckpoint = 4000", "PRAGMA wal_autocheckpoint", "4000"},
		{"PRAGMA journal_size_limit = 67108864", "PRAGMA journal_size_limit", "67108864"},
	} {
		if _, err := c.pragma(p.set); err != nil {
			return fmt.Errorf("%s: %w", p.set, err)
		}
		got, err := c.pragma(p.get)
		if err != nil {
			return fmt.Errorf("%s: %w", p.get, err)
		}
		if got != p.want {
			return fmt.Errorf("%w: %s did not stick, it is %q", ErrNotDurable, p.set, got)
		}
	}
	return nil
}

// Durability names the level that an accepted message has reached.
func (db *DB) Durability() string {
	if db.opts.Normal {
		return "local, synchronous=NORMAL: the last seconds may be lost at a power cut"
	}
	return "local"
}

// Path is the file that the store keeps everything in.
func (db *DB) Path() string { return db.path }

// Full says whether the disk is full, or a write found no room on it within
// the last half minute. What was accepted before is safe.
func (db *DB) Full() bool {
	at := db.full.Load()
	return db.room.shut.Load() || at != 0 && time.Since(db.writer.born)-time.Duration(at) < 30*time.Second
}

// Failed is closed when the store has stopped itself, because the disk no
// longer answers or another process has taken the file; Err then says why.
func (db *DB) Failed() <-chan struct{} { return db.failed }

// Err says why the store has stopped itself, if it has.
func (db *DB) Err() error {
	db.writer.mu.Lock()
	defer db.writer.mu.Unlock()
	return db.writer.fatal
}

// Close finishes what was begun, notes that the stop was clean, and gives the
// file up. Calls that come later get ErrClosed. Stop dispatchers and sweepers
// first; a handle that was attached stays open.
func (db *DB) Close() error {
	db.closing.Do(func() {
		db.gone.Store(true)
		db.backups.end()
		if db.attached != nil {
			db.attached.stopWatching()
		}
		if db.cancel != nil {
			db.cancel() // a salvage that is under way goes on at the next start
		}
		db.guards.Wait() // before the writer, which they use
		db.writer.close()
		var faults []error
		if db.Err() == nil && !db.writer.suspect && db.owns.Load() {
			faults = append(faults, db.room.forgive(db.leaveClean()))
		}
		db.closed = errors.Join(append(faults, db.release())...)
	})
	return db.closed
}

// release closes what open got, in reverse order.
func (db *DB) release() error {
	var faults []error
	if db.cancel != nil {
		db.cancel()
		<-db.background
		db.guards.Wait()
	}
	if db.room.done != nil {
		<-db.room.done
	}
	if a := db.attached; a != nil {
		return errors.Join(append(faults, a.detach(), db.owner.release())...)
	}
	if db.readers != nil {
		faults = append(faults, db.readers.Close())
	}
	if db.writer != nil {
		faults = append(faults, db.writer.conn.finalize())
	}
	if db.lent != nil {
		faults = append(faults, db.lent.Close())
	}
	if db.handle != nil {
		faults = append(faults, db.handle.Close())
	}
	return errors.Join(append(faults, db.owner.release())...)
}

func (db *DB) observeExpired(n int) {
	if o := db.opts.Observer; o != nil {
		o.ObserveExpired(n)
	}
}
