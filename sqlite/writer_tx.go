package sqlite

import (
	"database/sql/driver"
	"slices"

	"github.com/holdfast-mq/holdfast"
)

// writeTx is the transaction of one group, with the changes that it makes to memory after the
// commit.
type writeTx struct {
	w    *writer
	conn *conn
	now  int64 // strictly grows from message to message, across transactions too

	moves    []change
	fresh    []freshRow
	released []released
	ended    map[int64]struct{} // claims that this transaction has settled
	after    []func()           // run after the commit
	undo     []func()           // run after a rollback, last one first
	expiry   int64              // the earliest expiry of the messages that it wrote

	inboxed, kept int64 // rows added to the inbox, and to those that wait in it
	received      int64
	duplicates    int64
	journaled     bool // followers have something to read
	first, last   seen // the lowest and the highest keys that it wrote
	doubted       bool // the caller's SQL may have undone a part of it: see attach_recall.go

	private *private // of a caller's transaction: see attach_join.go
}

// change moves a message from one of a lane's counters to another.
type change struct {
	lane     *lane
	from, to holdfast.State
}

// none is the state before a message exists and after it is deleted.
const none = holdfast.State(255)

// freshRow is a message that is due or will be. Its lane learns of it after the commit.
type freshRow struct {
	lane  *lane
	due   int64
	claim *holdfast.Claim // nil: only the table has it
	tried bool            // ClaimFirst never gives it
}

// released is a claim that has ended.
type released struct {
	seq   int64
	tried bool // an attempt was made: counts towards a clean run
}

func (tx *writeTx) begin(w *writer) {
	last, ended := tx.now, tx.ended
	if ended == nil {
		ended = map[int64]struct{}{}
	}
	clear(ended)
	*tx = writeTx{
		w: w, conn: w.conn, now: max(w.db.clock.now(), last+1), ended: ended, expiry: never,
		moves: tx.moves[:0], fresh: tx.fresh[:0], released: tx.released[:0], after: tx.after[:0], undo: tx.undo[:0],
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

// wrote notes the key of a new row.
func (tx *writeTx) wrote(first, last *int64, key int64) {
	if *first == 0 {
		*first = key
	}
	*last = key
}

// expires notes when a message that is not final will expire.
func (tx *writeTx) expires(at int64) { tx.expiry = min(tx.expiry, at) }

// release ends a claim, once.
func (tx *writeTx) release(seq int64, tried bool) {
	tx.ended[seq] = struct{}{}
	tx.released = append(tx.released, released{seq, tried})
}

// enter is the first step of the transaction. From then on nobody else can write.
func (tx *writeTx) enter() error {
	err := tx.w.db.enter(tx.conn)
	tx.now = max(tx.now, tx.w.db.clock.now()) // the transaction may have waited
	if err == nil && tx.w.db.decided.Load() && tx.w.db.owns.Load() {
		err = tx.carryOut()
	}
	return err
}

func (tx *writeTx) rollback() {
	tx.conn.rollback()
	tx.forget()
}

// followed reports whether something reads the journal.
func (tx *writeTx) followed() bool {
	if tx.private != nil {
		return tx.private.followed
	}
	return tx.w.db.followed.Load()
}

// forget drops what memory learned in a transaction that was rolled back.
func (tx *writeTx) forget() {
	for _, f := range slices.Backward(tx.undo) {
		f()
	}
	tx.drop()
}

// publish tells memory what is on disk now.
func (tx *writeTx) publish() {
	db := tx.w.db
	db.lanes.publish(tx)
	if a := db.attached; a != nil {
		a.seen.after(tx)
	}
	db.inboxSize.Add(tx.inboxed)
	db.keptSize.Add(tx.kept)
	db.received.Add(tx.received)
	db.duplicates.Add(tx.duplicates)
	for _, f := range tx.after {
		f()
	}
	if tx.journaled {
		db.followers.RingAll()
	}
	tx.drop()
}

// drop releases what the transaction refers to, above all payloads.
func (tx *writeTx) drop() {
	clear(tx.fresh)
	clear(tx.after)
	clear(tx.undo)
	tx.fresh, tx.after, tx.undo = tx.fresh[:0], tx.after[:0], tx.undo[:0]
}
