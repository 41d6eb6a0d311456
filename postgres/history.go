package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-mq/holdfast"
)

// A store belongs to one history of its database. All that it remembers, its lease, and each of its
// connections belong to that history. The promotion of a standby, a restore to a point in time, and
// a restored dump begin another history. That one may give numbers again that have
// another meaning here:
//
//	a connection to a later server, or other tables
//	     ──► the turn: names, lease and claims are forgotten, old connections dropped
//	     ──► the node enters the new history under a new number, and gives back
//	         what was claimed under its name there; until then nothing is written
//	     ──► operators are told, until one of them acknowledges it (history_gap.go)

// past is the history that the store belongs to.
type past struct {
	forget func()     // drops what memory holds of a history that is over
	looks  sync.Mutex // one look at all hosts at a time, so that an earlier look undoes nothing

	mu     sync.Mutex
	line   line            // of each connection; zero: no server has identified itself yet
	tables string          // identity of the tables; "": not read yet
	table  int64           // number (OID) of one of the tables; 0: not read yet
	wal    int64           // position of the log at the last look
	turn   uint64          // counts the histories
	over   context.Context //nolint:containedctx // of this history
	end    context.CancelCauseFunc
	// patience ends when the store stops waiting for anything.
	patience context.Context //nolint:containedctx // of the store
	giveUp   context.CancelCauseFunc
	entered  uint64        // the turn in which this node has its owner number
	pause    time.Time     // no other attempt to enter before then
	reset    uint64        // the turn in which old connections were dropped
	untold   bool          // the rows of the database do not tell of the change, and this is not recorded yet
	last     time.Time     // when a commit last came back
	heard    time.Time     // when a server of the line last answered in any way
	away     time.Duration // for how long none of them must have answered before a server of another line is followed
	ended    time.Time     // last, in the history before; zero: none
	before   string        // the history before this turn; "": this is the first
	wasWith  string        // synchronous_standby_names in it
	with     string        // synchronous_standby_names now
	gap      *Gap          // the change of history that nobody has acknowledged; may be nil
	acks     uint64        // counts what operators have acknowledged
	rivals   []string      // servers that take writes at the same time
	dialed   chan struct{} // holds a value when there is a new connection
	behind   chan struct{} // holds a value when a caller has met a later server
}

var (
	errPassed = fmt.Errorf("%w: an old primary", ErrReadOnly)
	// errAnother: nothing is written before the node has entered the history.
	errAnother   = fmt.Errorf("%w: the database now has another history, which this node has not entered yet", holdfast.ErrUnavailable)
	errGivenUp   = fmt.Errorf("%w: the node stops, and no longer waits for the database", holdfast.ErrUnavailable)
	errElsewhere = fmt.Errorf("%w: another server answers now, which does not know the outcome", ErrUnknown)
)

func newPast(forget func()) *past {
	p := &past{forget: forget, dialed: make(chan struct{}, 1), behind: make(chan struct{}, 1)}
	p.patience, p.giveUp = context.WithCancelCause(context.Background())
	p.over, p.end = context.WithCancelCause(p.patience)
	return p
}

// within returns a ctx that also ends with this history. So nobody waits for an old primary, for
// example for a commit that hangs, and its connection becomes free for the next history.
func (p *past) within(ctx context.Context) (context.Context, context.CancelFunc) {
	p.mu.Lock()
	over := p.over
	p.mu.Unlock()
	return both(ctx, over)
}

// search returns a ctx for a look-up of at most bound, even if ctx has already ended.
func (p *past) search(ctx context.Context, bound time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound)
	ctx, release := both(ctx, p.patience)
	return ctx, func() {
		release()
		cancel()
	}
}

// both returns a ctx that ends when either of the two ends.
func both(ctx, other context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// since returns err, or over if the history of the given turn has ended since.
func (p *past) since(turn uint64, err, over error) error {
	now, _ := p.is()
	switch {
	case err == nil, errors.Is(err, ErrUnknown):
		return err
	case now != turn:
		return over
	case p.patience.Err() != nil && errors.Is(err, context.Canceled):
		return errGivenUp
	}
	return err
}

// met records each server that takes writes. It refuses a server that another one has continued
// from.
func (p *past) met(s server) error {
	if s.system == "" { // it does not identify itself
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch now := s.line(); {
	case p.sharesLine(now):
		p.heard = time.Now()
	case p.line == line{}:
		p.line, p.heard = now.unnamed(), time.Now()
	case now.before(p.line):
		return fmt.Errorf("%w: the server is at timeline %s, and another server has continued from there, at timeline %s; stop this server, or, if it was put back on purpose, restart this node", errPassed, number(now.timeline), number(p.line.timeline))
	default:
		p.next()
		p.line, p.heard = now.unnamed(), time.Now()
	}
	return nil
}

// next begins another history.
func (p *past) next() {
	p.before, p.wasWith, p.ended = p.text(), p.with, p.last
	p.turn++
	p.end(errStale)
	p.over, p.end = context.WithCancelCause(p.patience)
	p.tables, p.table, p.wal, p.pause = "", 0, 0, time.Time{}
	p.forget()
}

// text names the history, in the form that is stored.
func (p *past) text() string {
	if p.tables == "" {
		return p.before
	}
	return p.line.text(p.tables)
}

// holds reports whether a connection belongs to this history.
func (p *past) holds(c *pgx.Conn) bool {
	now := serverOf(c).line()
	p.mu.Lock()
	defer p.mu.Unlock()
	return now.system == "" || p.sharesLine(now)
}

// is returns the number of this history, and whether the node has entered it.
func (p *past) is() (turn uint64, entered bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.turn, p.turn == p.entered
}

func (p *past) isEntered() bool {
	_, entered := p.is()
	return entered
}

func (p *past) enter(turn uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.entered = turn
}

// refused delays the next attempt to enter: without an entry, each call asks for one.
func (p *past) refused(turn uint64, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turn == turn {
		p.pause = time.Now().Add(wait)
	}
}

func (p *past) pauses() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.turn != p.entered && time.Now().Before(p.pause)
}

// drops reports, once per turn, that old connections must be dropped.
func (p *past) drops(turn uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reset == turn {
		return false
	}
	p.reset = turn
	return true
}

// committed records that a commit has been answered.
func (p *past) committed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = time.Now()
	p.heard = p.last
}

// enteringKey marks the context of what a node does to enter a history.
type enteringKey struct{}

func entering(ctx context.Context) context.Context {
	return context.WithValue(ctx, enteringKey{}, true)
}

// connect takes a connection for a transaction. It fails until the node has entered the
// connection's history.
func (db *DB) connect(ctx context.Context, pool *pgxpool.Pool) (*pgxpool.Conn, error) {
	conn, err := pool.Acquire(ctx)
	switch {
	case err != nil && ctx.Err() == nil && db.life.Err() != nil: // the pool is closed
		return nil, holdfast.ErrClosed
	case err != nil:
		return nil, fmt.Errorf("connect: %w", err)
	}
	if !db.past.isEntered() && ctx.Value(enteringKey{}) == nil {
		conn.Release()
		db.self.askBeat()
		return nil, errAnother
	}
	return conn, nil
}

// still refuses numbers that were looked up in another history.
func (tx *ownTx) still(turn uint64) error {
	if now, _ := tx.db.past.is(); now != turn {
		return errStale
	}
	return nil
}

// sees compares the table that a transaction has found with the one that was known before it began:
// the tables may have been created anew on the same connection.
func (db *DB) sees(table, known int64) error {
	if known == table {
		return nil
	}
	db.self.askBeat()
	return errAnother
}

// now returns the number of this history, and the number of the table that names belong to. The
// table is 0 before the first look.
func (p *past) now() (turn uint64, table int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.turn, p.table
}

// errStale means that nothing was done, because the numbers that the call has looked up belong to a
// history that is over.
var errStale = fmt.Errorf("%w: the database has another history since the call began", holdfast.ErrUnavailable)

// anew runs f, which looks up numbers and uses them. It runs f once more if the numbers belong to a
// history that is over.
func anew(f func() error) error {
	err := f()
	if errors.Is(err, errStale) {
		err = f()
	}
	return err
}

// forgetHistory drops what memory holds of a history, including what is in hand.
func (db *DB) forgetHistory() {
	db.names.forget()
	db.inbound.identity.Store(nil)
	db.self.distrust()
	db.claim.forget()
	db.wakes.hangUp()
}

// look is what a heartbeat reads about the history.
type look struct {
	tables, noted, gap, with string
	table, wal, raw          int64
	acks                     uint64 // before it was read
	branch
}

func (l *look) scan(row pgx.Row) error {
	var text string
	err := row.Scan(&l.tables, &l.table, &l.noted, &l.gap, &l.with, &l.wal, &l.raw, &text)
	l.branch = parseBranch(text)
	return err
}

// readTable finds one of the tables each time it runs, even in a plan that was prepared before.
const readTable = `coalesce(to_regclass('hf_meta')::oid::bigint, 0)`

// readPast identifies the tables: a restored dump is in another database, or has created them anew.
// A table keeps its number (OID) until it is dropped, even through VACUUM FULL.
const readPast = `SELECT m.value || '-' || d.oid || '-' || 'hf_meta'::regclass::oid, ` + readTable + `,
		coalesce((SELECT value FROM hf_meta WHERE key = 'history'), ''), coalesce((SELECT value FROM hf_meta WHERE key = 'gap'), ''),
		current_setting('synchronous_standby_names'), (pg_current_wal_flush_lsn() - '0/0')::bigint, (SELECT raw FROM hf_clock), ` + findBranch + `
	FROM hf_meta AS m, pg_database AS d WHERE m.key = 'incarnation' AND d.datname = current_database()`

// lookBack reads which history this is, and reports it if nobody has acknowledged it.
func (db *DB) lookBack(ctx context.Context) (turn uint64, err error) {
	p := db.past
	turn, acks, on := p.stands()
	var l look
	for try := 0; ; try++ {
		l = look{acks: acks}
		if err := db.read(ctx, readPast, nil, func(rows pgx.Rows) error { return l.scan(rows) }); err != nil {
			return 0, fmt.Errorf("read the history of the database: %w", err)
		}
		if l.tables == "" || l.of == on || on.system == "" || try > 1 {
			break
		}
		if err := db.nameBranch(ctx, on); err != nil {
			return 0, err
		}
	}
	if l.of != on {
		l.name = ""
	}
	if l.tables == "" {
		return 0, fmt.Errorf("%w: table hf_meta is empty: the database is being restored, or was damaged", holdfast.ErrUnavailable)
	}
	turn, err = p.adopt(turn, &l)
	if err == nil {
		lasting, release := p.within(ctx)
		err = db.noteHistory(lasting, &l)
		release()
	}
	if errors.Is(err, errAnother) {
		db.self.askBeat()
	}
	return turn, err
}

// adopt compares what was read with what is known.
func (p *past) adopt(turn uint64, l *look) (uint64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turn != turn { // either history may have been read
		return 0, errAnother
	}
	same := p.line.branch == "" || p.line.branch == l.name
	if p.tables != "" && (p.tables != l.tables || l.wal < p.wal || !same) {
		p.untold = p.tables == l.tables && same // the name of the history is the same
		p.next()
	}
	begins := p.tables == ""
	p.tables, p.table, p.wal, p.with, p.line.branch = l.tables, l.table, l.wal, l.with, l.name
	if begins && forked(p.before, p.text()) {
		p.untold = true // the rows tell of the change from the primary before both
	}
	return p.turn, nil
}

// enterHistory takes the node's name under a new number. It gives back what was claimed under that
// name in a history that this node does not remember.
func (db *DB) enterHistory(ctx context.Context, owner int64) error {
	if db.self.hasLeft() {
		return nil
	}
	if turn, _ := db.past.is(); db.past.drops(turn) {
		db.pools.own.Reset()
		db.pools.lent.Reset()
	}
	if err := db.tickClock(ctx); err != nil { // first: leases depend on it
		return err
	}
	l, err := db.takeName(ctx, owner)
	if err != nil {
		return fmt.Errorf("enter another history: %w", err)
	}
	if l.owner == 0 {
		return fmt.Errorf("%w: %q, in this history; this node waits until that lease ends", ErrNodeTaken, db.opts.Node)
	}
	if err := db.entered(ctx, l); err != nil {
		return err
	}
	return db.count(ctx)
}
