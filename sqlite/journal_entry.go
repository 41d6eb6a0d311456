package sqlite

import (
	"github.com/holdfast-mq/holdfast"
)

// event is one row of the journal as it is written.
type event struct {
	message             int64
	kind                holdfast.EntryKind
	state               holdfast.State
	cycle, attempt      int
	outcome             holdfast.Outcome
	charged, maybe      bool
	took                int64
	reason, code, error string
	actor               string
}

func (tx *writeTx) event(e *event) error {
	seq, err := tx.conn.insert(insertEvent, e.message, int64(e.kind), int64(e.state), tx.tick(), int64(e.cycle), int64(e.attempt),
		int64(e.outcome), asBit(e.charged), asBit(e.maybe), e.took,
		nullText(e.reason), nullText(e.code), nullText(e.error), nullText(e.actor))
	tx.last.event = max(tx.last.event, seq)
	if err == nil && tx.followed() {
		tx.journaled = true
	}
	return err
}

// readEvent makes an event of a row of eventColumns.
func (db *DB) readEvent(v func(i int) any) holdfast.Entry {
	n := func(i int) int64 { return asInt(v(i)) }
	return holdfast.Entry{
		Seq: n(0), Kind: holdfast.EntryKind(n(1)), State: holdfast.State(n(2)), At: db.clock.wall(n(3)),
		Cycle: int(n(4)), Attempt: int(n(5)), Outcome: holdfast.Outcome(n(6)),
		Charged: n(7) == 1, Maybe: n(8) == 1, Took: duration(n(9)),
		Reason: holdfast.Reason(asText(v(10))), Code: asText(v(11)), Error: asText(v(12)), Actor: asText(v(13)),
	}
}
