package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-mq/holdfast"
)

// A store belongs to one history of its database. All that it remembers of it,
// its lease, and each of its connections are of that one. A standby that is
// promoted, a restore to a point in time and a restored dump begin another one,
// in which numbers may be given again that were given to something else:
//
//	a connection to a later server, or tables that are others
//	     ──► the turn: names, lease and claims are forgotten, old connections dropped
//	     ──► the node enters the new history under a new number, and gives back
//	         what its name has in hand there; until then nothing is written
//	     ──► people are told, until one of them acknowledges it (history_gap.go)

// line is what servers have written one after the other, each going on where
// the one before has ended. A promotion, and a restore to a point in time, begin
// another timeline.
type line struct{ system, timeline string }

// before says whether a server of o has gone on from a server of l.
func (l line) before(o line) bool { return l.system == o.system && l.timeline < o.timeline }

func (s server) line() line { return line{s.system, s.timeline} }

// past is the history that the store belongs to.
type past struct {
	forget func()     // what memory holds of a history that is over
	looks  sync.Mutex // one look at all hosts at a time: an earlier one takes nothing back

	mu     sync.Mutex
	line   line            // of each connection; zero: no server has told yet
	tables string          // which ones those are; "": not looked yet
	table  int64           // the number of one of them; 0: not looked yet
	wal    int64           // how much was written, at the last look
	turn   uint64          // counts the histories
	over   context.Context //nolint:containedctx // of this history
	end    context.CancelCauseFunc
	// patience ends when nothing is waited for any more.
	patience context.Context //nolint:containedctx // of the store
	giveUp   context.CancelCauseFunc
	entered  uint64        // the turn in which this node has its number
	pause    time.Time     // until when no other entry is tried
	reset    uint64        // the turn in which old connections were dropped
	rolled   bool          // the log is shorter than it was, and nobody has noted it
	last     time.Time     // when a commit last came back
	ended    time.Time     // the same, in the history before; zero: there was none
	before   string        // the history before this turn; "": this is the first
	wasWith  string        // synchronous_standby_names in it
	with     string        // the same, now
	gap      *Gap          // what nobody has acknowledged
	rivals   []string      // servers that take writes beside each other
	dialed   chan struct{} // holds a value when there is a new connection
	behind   chan struct{} // holds a value when a caller has met a later server
}

var (
	errPassed = fmt.Errorf("%w: an old primary", ErrReadOnly)
	// errAnother: nothing is written before the node has entered.
	errAnother   = fmt.Errorf("%w: the database has another history now, which this node has not entered yet", holdfast.ErrUnavailable)
	errGivenUp   = fmt.Errorf("%w: the node stops, and does not wait for the database any more", holdfast.ErrUnavailable)
	errElsewhere = fmt.Errorf("%w: another server answers now, which cannot tell", ErrUnknown)
)

func newPast(forget func()) *past {
	p := &past{forget: forget, dialed: make(chan struct{}, 1), behind: make(chan struct{}, 1)}
	p.patience, p.giveUp = context.WithCancelCause(context.Background())
	p.over, p.end = context.WithCancelCause(p.patience)
	return p
}

// within is ctx for as long as this history lasts: what an old primary still
// owes, such as a commit that hangs, is not waited for, and its connection is
// free for the next history.
func (p *past) within(ctx context.Context) (context.Context, context.CancelFunc) {
	p.mu.Lock()
	over := p.over
	p.mu.Unlock()
	return both(ctx, over)
}

// search is for what is looked up, for at most bound, after ctx may have ended.
func (p *past) search(ctx context.Context, bound time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound)
	ctx, release := both(ctx, p.patience)
	return ctx, func() {
		release()
		cancel()
	}
}

// both is ctx until one of two ends.
func both(ctx, other context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// since is err, and over where the history of turn is, in which it came up.
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

// met is told of each server that takes writes, and refuses one from which
// another has gone on.
func (p *past) met(s server) error {
	if s.system == "" { // it does not tell
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch now := s.line(); {
	case p.line == now:
	case p.line == line{}:
		p.line = now
	case now.before(p.line):
		return fmt.Errorf("%w: the server is at timeline %s, and another one has gone on from there, at timeline %s; end it, or, if it was put back on purpose, restart this node", errPassed, number(now.timeline), number(p.line.timeline))
	default:
		p.next()
		p.line = now
	}
	return nil
}

// other is the system of this history, if the server is of another one.
func (p *past) other(s server) (system string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.system == "" || s.system == p.line.system {
		return ""
	}
	return p.line.system
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

// text names the history, as it is stored.
func (p *past) text() string {
	if p.tables == "" {
		return p.before
	}
	return p.line.system + " " + p.line.timeline + " " + p.tables
}

// number is a timeline as people write it.
func number(timeline string) string { return strings.TrimLeft(timeline, "0") }

// holds says whether a connection is of this history.
func (p *past) holds(c *pgx.Conn) bool {
	now := serverOf(c).line()
	p.mu.Lock()
	defer p.mu.Unlock()
	return now.system == "" || now == p.line
}

// is tells the number of this history, and whether the node has entered it.
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

// refused has the next entry wait: each call asks for one while there is none.
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

// drops says once per turn that old connections are to be dropped.
func (p *past) drops(turn uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reset == turn {
		return false
	}
	p.reset = turn
	return true
}

// committed notes that a commit has come back.
func (p *past) committed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = time.Now()
}

// enteringKey marks what a node does to enter.
type enteringKey struct{}

func entering(ctx context.Context) context.Context {
	return context.WithValue(ctx, enteringKey{}, true)
}

// connect takes a connection for a transaction, once the node has entered the
// history that it is of.
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

// still refuses what was looked up in another history.
func (tx *ownTx) still(turn uint64) error {
	if now, _ := tx.db.past.is(); now != turn {
		return errStale
	}
	return nil
}

// sees compares the tables that a transaction has found with those that were
// known before it began: they may have been made anew on the same connection.
func (db *DB) sees(table, known int64) error {
	if known == table {
		return nil
	}
	db.self.askBeat()
	return errAnother
}

// now is the number of this history, and of the table that names belong to in
// it; 0: nobody has looked yet.
func (p *past) now() (turn uint64, table int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.turn, p.table
}

// errStale says that nothing was done: the numbers that the call has looked up
// do not come back.
var errStale = fmt.Errorf("%w: the database has another history since the call began", holdfast.ErrUnavailable)

// anew runs what looks numbers up and uses them, and once more where they were
// of a history that is over.
func anew(f func() error) error {
	err := f()
	if errors.Is(err, errStale) {
		err = f()
	}
	return err
}

// forgetHistory ends what memory knows of a history, what is in hand too.
func (db *DB) forgetHistory() {
	db.names.forget()
	db.inbound.identity.Store(nil)
	db.self.distrust()
	db.claim.forget()
	db.wakes.hangUp()
}

// look is what a heartbeat reads.
type look struct {
	tables, noted, gap, with string
	table, wal, raw          int64
}

// readTable finds one of the tables each time that it runs, also in a plan of before.
const readTable = `coalesce(to_regclass('hf_meta')::oid::bigint, 0)`

// readPast tells which tables those are: a restored dump is in another database,
// or has made them anew. A table keeps its number whatever is done to it, VACUUM
// FULL too, until it is dropped.
const readPast = `SELECT m.value || '-' || d.oid || '-' || 'hf_meta'::regclass::oid, ` + readTable + `,
		coalesce((SELECT value FROM hf_meta WHERE key = 'history'), ''), coalesce((SELECT value FROM hf_meta WHERE key = 'gap'), ''),
		current_setting('synchronous_standby_names'), (pg_current_wal_flush_lsn() - '0/0')::bigint, (SELECT raw FROM hf_clock)
	FROM hf_meta AS m, pg_database AS d WHERE m.key = 'incarnation' AND d.datname = current_database()`

// lookBack reads which history this is, and says so if nobody has acknowledged it.
func (db *DB) lookBack(ctx context.Context) (turn uint64, err error) {
	p := db.past
	turn, _ = p.is()
	var l look
	if err := db.read(ctx, readPast, nil, func(rows pgx.Rows) error {
		return rows.Scan(&l.tables, &l.table, &l.noted, &l.gap, &l.with, &l.wal, &l.raw)
	}); err != nil {
		return 0, fmt.Errorf("read the history of the database: %w", err)
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
	if p.turn != turn { // which of them was read nobody can say
		return 0, errAnother
	}
	if p.tables != "" && (p.tables != l.tables || l.wal < p.wal) {
		p.rolled = p.tables == l.tables // its text is the same
		p.next()
	}
	p.tables, p.table, p.wal, p.with = l.tables, l.table, l.wal, l.with
	return p.turn, nil
}

// enterHistory takes the node's name under a new number, and gives back what
// the name has in hand in a history that this node does not remember.
func (db *DB) enterHistory(ctx context.Context, owner int64) error {
	if db.self.hasLeft() {
		return nil
	}
	if turn, _ := db.past.is(); db.past.drops(turn) {
		db.pools.own.Reset()
		db.pools.lent.Reset()
	}
	if err := db.tickClock(ctx); err != nil { // first: leases end by it
		return err
	}
	l, err := db.takeName(ctx, owner)
	if err != nil {
		return fmt.Errorf("enter another history: %w", err)
	}
	if l.owner == 0 {
		return fmt.Errorf("%w: %q, as this history has it; this node waits until that lease is over", ErrNodeTaken, db.opts.Node)
	}
	if err := db.entered(ctx, l); err != nil {
		return err
	}
	return db.count(ctx)
}
