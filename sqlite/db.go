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
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	moderncsqlite "modernc.org/sqlite"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/follow"
)

// Options of Open and Attach. The zero value works.
type Options struct {
	// Source is the source of messages that name none. Zero: the host's name. To a receiver, source
	// and id together identify a message: give each sender its own name, and never change it.
	Source string
	// Normal makes fewer syncs, at the price of the last commits before a power cut. Health reports
	// it.
	Normal bool
	// TurnWait limits the wait for a transaction of Do or a handler that does not end. Zero: 30 s.
	TurnWait time.Duration
	// SaneAfter is the earliest time that a working clock shows. Before it nothing expires and
	// nothing is deleted. Zero: 2020-01-01.
	SaneAfter time.Time
	// ClockHold limits how long the store doubts time that has passed only by the wall clock, as at
	// a start. Messages that would end because of that time are held meanwhile: neither delivered
	// nor ended. DB.Doubt reports it. Zero: a day.
	ClockHold time.Duration
	// Reserve is how many bytes of the disk are set aside in a file beside the database, for
	// recording outcomes when the disk is full. Zero: 16 MiB; negative: none.
	Reserve int64
	// SalvageWait is how long Open waits for the salvage of a damaged file before the salvage goes
	// on in the background. Zero: 20 s.
	SalvageWait time.Duration
	// Adopt accepts a copy that was made while the file was in use, which Open otherwise refuses
	// with ErrCopied. The original may have delivered messages that wait in the copy.
	Adopt    bool
	Observer holdfast.Observer
	Logger   *slog.Logger // zero: discards

	copying bool                                   // a move may go on in the file
	clock   reading                                // the machine's clock; tests set it
	look    time.Duration                          // default lookEvery; tests set it
	connect func(name string) (driver.Conn, error) // opens a connection of the driver; tests wrap it
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

// DB is an outbox and an inbox in one SQLite file. Its methods may be called concurrently. After
// Close they return holdfast.ErrClosed.
type DB struct {
	path string
	opts Options
	log  *slog.Logger

	owner     *ownership
	epoch     int64
	taken     atomic.Int64 // numbers of messages start after this one; 0: after the highest in the table
	schemaWas int          // number of the file's last migration when it was opened
	owns      atomic.Bool  // false: another process may own the file, which is the caller's database
	clock     *clock
	handle    *sql.DB   // has the writer's connection; nil in the caller's database
	lent      *sql.Conn // the same connection, for callers' transactions
	readers   *sql.DB
	prepared  prepared
	writer    *writer
	lanes     *lanes
	routes    map[routeKey]route   // belongs to the writer
	names     map[int64]routeNames // belongs to the writer
	sources   map[string]int64     // belongs to the writer

	attached *attached // nil: the file belongs to the store alone

	backups    *backups
	followers  holdfast.Wakes // rung when they have something to read
	following  follow.Running
	followed   atomic.Bool
	notify     atomic.Int64 // the value of metaNotify
	sweeps     sweeps
	held       atomic.Int64 // number of held messages found by the last scan
	marks      atomic.Bool  // since the start, people have decided about messages in hand
	decided    atomic.Bool  // decisions wait for the owner; see carryOut
	heard      int64        // those decisions come after this event; belongs to the writer
	clockSaved clockSaved   // belongs to the writer
	failed     chan struct{}
	background chan struct{}   // closed when the seeding goroutine has ended
	life       context.Context //nolint:containedctx // of background work, until Close
	cancel     context.CancelFunc
	closing    sync.Once
	closed     error
	gone       atomic.Bool // Close has begun: readers get ErrClosed

	salvaging *salvage       // of a damaged file; nil: none
	guards    sync.WaitGroup // goroutines that salvage
	check     atomic.Pointer[IntegrityCheck]
	files     []openedFile

	full atomic.Int64 // when a write last found no room, in time since the writer's start; 0: never
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

// Open opens or makes the file at path and becomes its owner. It returns when every message of the
// file can be claimed. ErrOwned, ErrNewer, ErrNotDurable, ErrCopied and ErrReadOnly say why it did
// not; then nothing was changed.
//
// Open sets a damaged file aside under another name, never deletes it, and salvages what can be
// read of it into a new file; DB.Damage reports it. It leaves a damaged file that also holds the
// caller's tables as it is: ErrDamaged. If salvage takes longer than Options.SalvageWait, it goes
// on while messages are delivered. Until it ends, nothing is accepted: ErrRecovering.
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
		path = to // one lock, even if a file has two names
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

// newOwned returns a store for a file of its own, which is not opened yet.
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
		sources: map[string]int64{}, failed: make(chan struct{}), background: make(chan struct{}),
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
		db.writer.restartLogWithReserve() // the log's room on the disk can be used again
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
		// A process that was killed may have left frames at the end of the log. New frames must not
		// come before them: that would look like damage to suspicion.
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
	// A reader never makes a file: a missing file was taken away.
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

// dsn names the file with the pragmas that every connection needs. The busy time-out comes first,
// since setting the journal mode can meet a lock.
func dsn(path string, more ...string) string {
	pragmas := append([]string{"busy_timeout(5000)"}, more...)
	pragmas = append(pragmas, "cache_size(-8000)", "foreign_keys(0)", "temp_store(memory)")
	return "file:" + escapePath(path) + "?_pragma=" + strings.Join(pragmas, "&_pragma=")
}

// peek refuses a file that is not for this release. It only reads: a last connection that may write
// would merge the log into the file when it closes.
func (db *DB) peek() (err error) {
	name := dsn(db.path) + "&mode=ro"
	if s, err := os.Stat(db.path); err != nil || s.Size() == 0 {
		name = ":memory:" // there is no file yet, but SQLite has a version
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

// connect opens the writer's connection once, through database/sql, so that callers' transactions
// can run on it. It keeps the driver's own connection for the store's statements.
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

// configure sets what makes a commit durable, and reads it back.
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
			return fmt.Errorf("%w: %s had no effect, it is %q", ErrNotDurable, p.set, got)
		}
	}
	return nil
}

// Durability names the level of durability that an accepted message has.
func (db *DB) Durability() string {
	if db.opts.Normal {
		return "local, synchronous=NORMAL: the last seconds may be lost at a power cut"
	}
	return "local"
}

// Path returns the path of the store's file.
func (db *DB) Path() string { return db.path }

// Full reports whether the disk is full, or a write has found no room on it within the last half
// minute. What was accepted before is safe.
func (db *DB) Full() bool {
	at := db.full.Load()
	return db.room.shut.Load() || at != 0 && time.Since(db.writer.born)-time.Duration(at) < 30*time.Second
}

// Failed returns a channel that is closed when the store has stopped itself, because the disk no
// longer answers or another process has taken the file. Err then returns the reason.
func (db *DB) Failed() <-chan struct{} { return db.failed }

// Err returns why the store has stopped itself, or nil if it has not.
func (db *DB) Err() error {
	db.writer.mu.Lock()
	defer db.writer.mu.Unlock()
	return db.writer.fatal
}

// Close finishes work that was begun, notes a clean stop, and releases the file. Later calls return
// ErrClosed. Stop dispatchers and sweepers first. A handle that was attached stays open.
func (db *DB) Close() error {
	db.closing.Do(func() {
		db.gone.Store(true)
		db.backups.end()
		if db.attached != nil {
			db.attached.stopWatching()
		}
		if db.cancel != nil {
			db.cancel() // an unfinished salvage goes on at the next start
		}
		db.guards.Wait() // before the writer, which the guards use
		db.writer.close()
		var faults []error
		if db.Err() == nil && !db.writer.suspect && db.owns.Load() {
			faults = append(faults, db.room.forgive(db.leaveClean()))
		}
		db.closed = errors.Join(append(faults, db.release())...)
	})
	return db.closed
}

// release closes what open has opened, in reverse order.
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
	awaitClosed(db.readers, db.handle)
	return errors.Join(append(faults, db.owner.release())...)
}

// awaitClosed waits until no connection of closed pools is left, two seconds at most: database/sql closes one that
// is in use when it comes back. The last one to close deletes the write-ahead log, which whoever opens the file next
// may have begun to read.
func awaitClosed(pools ...*sql.DB) {
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for range 2000 {
		if !slices.ContainsFunc(pools, func(p *sql.DB) bool { return p != nil && p.Stats().OpenConnections > 0 }) {
			return
		}
		<-look.C
	}
}

func (db *DB) observeExpired(n int) {
	if o := db.opts.Observer; o != nil {
		o.ObserveExpired(n)
	}
}
