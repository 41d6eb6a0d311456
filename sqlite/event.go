package sqlite

import (
	"github.com/holdfast-mq/holdfast"
)

// event is one row of the journal as it is written.
type event struct {
	message             int64
	kind                holdfast.EventKind
	state               holdfast.State
	cycle, attempt      int
	outcome             holdfast.Outcome
	charged, maybe      bool
	took                int64
	reason, code, error string
	actor               string
}

func (tx *writeTx) event(e *event) error {
	_, err := tx.exec(insertEvent, e.message, int64(e.kind), int64(e.state), tx.tick(), int64(e.cycle), int64(e.attempt),
		int64(e.outcome), asBit(e.charged), asBit(e.maybe), e.took,
		nullText(e.reason), nullText(e.code), nullText(e.error), nullText(e.actor))
	if err == nil && tx.w.db.followed.Load() {
		tx.journaled = true
	}
	return err
}

// eventColumns are what readEvent reads, of hf_event AS e.
const eventColumns = `e.seq, e.kind, e.state, e.at, e.cycle, e.attempt, e.outcome, e.charged, e.maybe, e.took, e.reason, e.code, e.error, e.actor`

func (db *DB) readEvent(v []any) holdfast.Event {
	return holdfast.Event{
		Seq: asInt(v[0]), Kind: holdfast.EventKind(asInt(v[1])), State: holdfast.State(asInt(v[2])), At: db.clock.wall(asInt(v[3])),
		Cycle: int(asInt(v[4])), Attempt: int(asInt(v[5])), Outcome: holdfast.Outcome(asInt(v[6])),
		Charged: asInt(v[7]) == 1, Maybe: asInt(v[8]) == 1, Took: duration(asInt(v[9])),
		Reason: holdfast.Reason(asText(v[10])), Code: asText(v[11]), Error: asText(v[12]), Actor: asText(v[13]),
	}
}
