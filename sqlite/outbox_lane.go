package sqlite

import (
	"math"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Limits of what a lane holds in memory between a commit and a claim.
const (
	freshRows  = 4096
	freshBytes = 8 << 20
	freshTotal = 64 << 20 // in all lanes together
)

// lanes is what memory knows of the outbox. It is a copy of committed rows; the writer changes it
// after each commit.
type lanes struct {
	db *DB

	mu      sync.Mutex
	byName  map[string]*lane
	leases  map[int64]lease
	token   int64
	careful int // attempts that must end before claims need no disk write any more
	most    int // largest number of claims in hand while careful: see start_suspects.go
	bytes   int // total size of the payloads in fresh, of all lanes

	aheadBytes int // total size of the rows in ahead, of all lanes

	suspects map[int64]*lane // messages that were in hand when the process died, and were not tried since

	// nextExpiry is not later than the earliest expiry of a waiting row.
	nextExpiry int64

	wakes holdfast.Wakes
}

// lane is one destination. lanes.mu guards all fields except id and order, which belong to the
// writer.
type lane struct {
	name  string
	id    int64
	order int64 // of ordering keys: see outbox_key.go

	// Every due row up to the cursor is leased, or is in fresh. While caughtUp, no row after the
	// cursor is due before nextDue, and new rows go to fresh. Otherwise the table must be read.
	cursorDue, cursorSeq int64
	firstDue, firstSeq   int64 // another cursor: each due row up to it that was never tried is leased, in fresh, or older than firstAgo
	caughtUp             bool
	nextDue              int64
	fresh                []holdfast.Claim
	freshBytes           int
	liveFirst            bool
	ahead                []aheadRow // with liveFirst, these go before the backlog: see outbox_live_first.go
	turn                 int        // who gets an odd slot: 1: ahead, 0: the backlog
	rewinds              uint64     // tells a reader of the table that its cursor is out of date

	leased int // number of claims in hand
	counts holdfast.LaneCounts
}

// lease is a claim in hand.
type lease struct {
	lane     *lane
	token    int64
	failures int
	tries    int
	cycle    int
	revision int
	durable  bool // the row is in state 1 on disk
	okey     string
	expires  int64
}

func newLanes(db *DB) *lanes {
	return &lanes{
		db: db, most: everything, byName: map[string]*lane{}, leases: map[int64]lease{},
		suspects: map[int64]*lane{},
	}
}

// get returns the lane of a destination, which may not be on disk yet.
func (ls *lanes) get(destination string) *lane {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.locked(destination)
}

func (ls *lanes) locked(destination string) *lane {
	l := ls.byName[destination]
	if l == nil {
		l = &lane{name: destination, nextDue: never}
		ls.byName[destination] = l
	}
	return l
}

// publish updates memory with a committed transaction.
func (ls *lanes) publish(tx *writeTx) {
	if len(tx.moves)+len(tx.fresh)+len(tx.released) == 0 {
		return
	}
	ls.mu.Lock()
	for _, m := range tx.moves {
		m.lane.count(m.from, -1)
		m.lane.count(m.to, 1)
	}
	for _, r := range tx.released {
		if held, ok := ls.leases[r.seq]; ok {
			held.lane.leased--
			delete(ls.leases, r.seq)
		}
		if r.tried {
			ls.survived(r.seq)
		}
	}
	ls.nextExpiry = min(ls.nextExpiry, tx.expiry)
	var last *lane
	for i := range tx.fresh {
		f := &tx.fresh[i]
		if f.due == never {
			continue
		}
		ls.addFresh(f, tx.now)
		if f.lane != last { // rows of one call follow each other
			ls.wakes.Ring(f.lane.name)
			last = f.lane
		}
	}
	ls.mu.Unlock()
}

// set replaces all counters.
func (ls *lanes) set(counts map[string]*lane) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.byName {
		l.counts = holdfast.LaneCounts{}
	}
	for name, l := range counts {
		ls.locked(name).counts = l.counts
	}
}

func (l *lane) count(s holdfast.State, by int64) {
	switch s {
	case holdfast.Pending, holdfast.Claimed:
		l.counts.Pending += by
	case holdfast.Parked:
		l.counts.Parked += by
	case holdfast.Expired:
		l.counts.Expired += by
	case holdfast.Delivered, holdfast.Discarded, none:
	}
}

// addFresh takes note of a committed pending row.
func (ls *lanes) addFresh(f *freshRow, now int64) {
	l := f.lane
	if !f.tried && f.due <= l.firstDue {
		l.firstDue, l.firstSeq = f.due-1, math.MaxInt64
	}
	switch {
	case f.due <= l.cursorDue && f.tried && len(l.fresh) == 0:
		due, seq := l.firstCursor() // what was tried changes nothing for first attempts
		ls.rewind(l)
		l.firstDue, l.firstSeq = due, seq
	case f.due <= l.cursorDue:
		ls.rewind(l)
	case f.due > now:
		l.nextDue = min(l.nextDue, f.due)
	case !l.caughtUp:
		ls.keepAhead(l, f)
	case !ls.db.owns.Load(): // nobody claims here
	case f.claim == nil, ls.careful > 0, l.nextDue <= f.due, ls.full(l):
		l.caughtUp = false
	default:
		n := len(f.claim.Message.Payload)
		l.fresh = append(l.fresh, *f.claim)
		l.freshBytes += n
		ls.bytes += n
		l.cursorDue, l.cursorSeq = f.due, f.claim.Seq
	}
}

func (ls *lanes) full(l *lane) bool {
	return len(l.fresh) >= freshRows || l.freshBytes >= freshBytes || ls.bytes >= freshTotal
}

// rewind makes the next claim read the table from the start. Leased rows are skipped there, so that
// nothing depends on a correct cursor.
func (ls *lanes) rewind(l *lane) {
	ls.bytes -= l.freshBytes
	l.cursorDue, l.cursorSeq, l.caughtUp = math.MinInt64, 0, false
	l.firstDue, l.firstSeq = math.MinInt64, 0
	l.fresh, l.freshBytes = nil, 0
	ls.dropAhead(l)
	l.rewinds++
}

// firstCursor returns up to where nothing is left for ClaimFirst.
func (l *lane) firstCursor() (due, seq int64) {
	if l.cursorDue > l.firstDue || l.cursorDue == l.firstDue && l.cursorSeq > l.firstSeq {
		return l.cursorDue, l.cursorSeq
	}
	return l.firstDue, l.firstSeq
}

// needsTable reports whether the table may have due rows that memory does not hold.
func (l *lane) needsTable(now int64) bool { return !l.caughtUp || l.nextDue <= now }

// untilDue returns how long the lane has nothing to do; negative: for ever.
func (l *lane) untilDue(now int64) time.Duration {
	switch {
	case len(l.fresh) > 0 || l.needsTable(now):
		return 0
	case l.nextDue == never:
		return -1
	}
	return span(now, l.nextDue)
}

// popFresh leases up to n fresh messages. A message whose time is over makes it rewind the lane:
// the table's reader expires the message.
func (ls *lanes) popFresh(l *lane, n int, now int64, out []holdfast.Claim) []holdfast.Claim {
	for n > 0 && len(l.fresh) > 0 {
		c := l.fresh[0]
		if c.Expires >= 0 && int64(c.Expires) <= now {
			ls.rewind(l)
			break
		}
		l.fresh[0] = holdfast.Claim{}
		l.fresh = l.fresh[1:]
		l.freshBytes -= len(c.Message.Payload)
		ls.bytes -= len(c.Message.Payload)
		out = append(out, ls.lease(l, c, now, false))
		n--
	}
	if len(l.fresh) == 0 {
		l.fresh = nil
	}
	return out
}

// lease hands a claim out. Before, Expires and Attempt.FirstAgo of the claim hold instants of the
// store.
func (ls *lanes) lease(l *lane, c holdfast.Claim, now int64, durable bool) holdfast.Claim {
	ls.token++
	c.Token = ls.token
	expires := int64(never)
	if c.Expires >= 0 {
		expires = int64(c.Expires)
		c.Expires = span(now, expires)
	}
	if first := int64(c.Message.Attempt.FirstAgo); first != 0 {
		c.Message.Attempt.FirstAgo = duration(ls.db.clock.guard.Age(now, first))
	}
	c.Message.Attempt.Number = c.Tries + 1
	l.leased++
	ls.leases[c.Seq] = lease{
		lane: l, token: c.Token, failures: c.Failures, tries: c.Tries, cycle: c.Message.Attempt.Cycle, revision: c.Revision,
		durable: durable, okey: c.Message.OrderingKey, expires: expires,
	}
	return c
}

// dispatches reports whether a dispatcher of this process runs on the store.
func (ls *lanes) dispatches() bool { return ls.wakes.Some() }

// Wake implements holdfast.Store.
func (db *DB) Wake() *holdfast.Wake { return db.lanes.wakes.Subscribe() }
