package sqlite

import (
	"database/sql/driver"

	"github.com/holdfast-mq/holdfast"
)

// writeTx is the transaction of one group, and what it will change in memory
// once it is committed.
type writeTx struct {
	w    *writer
	conn *conn
	now  int64 // strictly grows from message to message, over transactions too

	moves    []move
	fresh    []freshRow
	released []released
	routes   []routeKey // cached in this transaction
	lanes    []*lane    // got their number in this transaction
	after    []func()

	newSources    []string
	inboxed, kept int64 // rows added to the inbox, and of those that wait
	received      int64
	duplicates    int64
	journaled     bool // followers have something to read
}

// move is a change of the counters.
type move struct {
	lane     *lane
	from, to holdfast.State
}

// none is the state before a message exists and after it is gone.
const none = holdfast.State(255)

// freshRow is a message that became due or will be: the lane learns of it
// after the commit.
type freshRow struct {
	lane  *lane
	due   int64
	dies  int64           // when it expires; 0: that did not change
	claim *holdfast.Claim // nil: only the table has it
}

// released is a claim that ended.
type released struct {
	seq     int64
	durable bool // it was settled: counts towards a clean run
}

func (tx *writeTx) begin(w *writer) {
	last := tx.now
	*tx = writeTx{
		w: w, conn: w.conn, now: max(w.db.clock.now(), last+1),
		moves: tx.moves[:0], fresh: tx.fresh[:0], released: tx.released[:0],
		routes: tx.routes[:0], lanes: tx.lanes[:0], newSources: tx.newSources[:0],
	}
}

// tick returns an instant that no other row has.
func (tx *writeTx) tick() int64 {
	tx.now++
	return tx.now
}

func (tx *writeTx) exec(id statement, args ...driver.Value) (int64, error) {
	return tx.conn.exec(id, args...)
}

func (tx *writeTx) rollback() {
	// The transaction may be gone already; then this says so, and that is fine.
	_, _ = tx.conn.exec(rollbackNow)
	tx.forget()
}

// forget drops what memory learned in a transaction that did not happen.
func (tx *writeTx) forget() {
	for _, k := range tx.routes {
		delete(tx.w.db.routes, k)
	}
	for _, l := range tx.lanes {
		l.id = 0
	}
	for _, name := range tx.newSources {
		delete(tx.w.db.sources, name)
	}
	clear(tx.fresh)
	tx.after = nil
}

// publish tells memory what is now on disk.
func (tx *writeTx) publish() {
	db := tx.w.db
	db.lanes.publish(tx)
	db.inboxSize.Add(tx.inboxed)
	db.keptSize.Add(tx.kept)
	db.received.Add(tx.received)
	db.duplicates.Add(tx.duplicates)
	for _, f := range tx.after {
		f()
	}
	if tx.journaled {
		db.followers.wake()
	}
	clear(tx.fresh) // drop the references to payloads
	tx.after = nil
}
