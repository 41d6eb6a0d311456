package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"

	"github.com/holdfast-mq/holdfast"
)

// event is a row of the journal to be written.
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
	detail              []byte // kept only for followers
}

func (tx *writeTx) event(e *event) error {
	var detail driver.Value
	if tx.followed() {
		detail = nullText(string(e.detail))
	}
	seq, err := tx.conn.insert(insertEvent, e.message, int64(e.kind), int64(e.state), tx.tick(), int64(e.cycle), int64(e.attempt),
		int64(e.outcome), asBit(e.charged), asBit(e.maybe), e.took,
		nullText(e.reason), nullText(e.code), nullText(e.error), nullText(e.actor), detail)
	tx.last.event = max(tx.last.event, seq)
	if err == nil && tx.followed() {
		tx.journaled = true
	}
	return err
}

// note writes an entry that does not belong to a message's own history, if anything follows the
// journal. message is the key of a message in the outbox, or 0 if the entry is about none.
func (tx *writeTx) note(message int64, e *holdfast.Entry) error {
	if !tx.followed() {
		return nil
	}
	var of, id driver.Value
	if message != 0 {
		of = message
	} else if e.ID != "" {
		id = idValue(e.ID)
	}
	seq, err := tx.conn.insert(insertNote, of, int64(e.Kind), tx.tick(), int64(e.Cycle), int64(e.Attempt), int64(e.Outcome),
		nullText(e.Code), nullText(e.Error), nullText(e.Actor), nullText(e.Subject), id, nullText(string(e.Detail)))
	tx.last.event = max(tx.last.event, seq)
	tx.journaled = tx.journaled || err == nil
	return err
}

// Append implements holdfast.Journal.
func (db *DB) Append(ctx context.Context, entries ...holdfast.Entry) error {
	err := holdfast.CheckEntries(entries)
	if err == nil && (db.followed.Load() || db.attached != nil) {
		err = db.writer.do(ctx, workFunc(func(tx *writeTx) error {
			for i := range entries {
				if err := tx.note(0, &entries[i]); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	if err != nil {
		return fmt.Errorf("append to the journal: %w", err)
	}
	return nil
}

// readEvent makes an entry from a row of eventColumns.
func (db *DB) readEvent(v func(i int) any) holdfast.Entry {
	n := func(i int) int64 { return asInt(v(i)) }
	return holdfast.Entry{
		Seq: n(0), Kind: holdfast.EntryKind(n(1)), State: holdfast.State(n(2)), At: db.clock.wall(n(3)),
		Cycle: int(n(4)), Attempt: int(n(5)), Outcome: holdfast.Outcome(n(6)),
		Charged: n(7) == 1, Maybe: n(8) == 1, Took: duration(n(9)),
		Reason: holdfast.Reason(asText(v(10))), Code: asText(v(11)), Error: asText(v(12)), Actor: asText(v(13)),
	}
}

// readAbout makes what an entry says of its message.
func (db *DB) readAbout(e *holdfast.Entry, v []any) *holdfast.About {
	m := holdfast.Message{ID: e.ID}
	db.readExtras(&m, asText(v[3]), "")
	return &holdfast.About{
		Source: asText(v[0]), Kind: holdfast.Kind(asText(v[1])), Endpoint: asText(v[2]), Headers: m.Headers, CorrelationID: asText(v[4]), Created: db.clock.wall(asInt(v[5])),
	}
}

// detail encodes one more value of an entry as JSON.
func detail(name, value string) []byte {
	b, err := json.Marshal(map[string]string{name: value})
	if err != nil { // a text can always be encoded
		return nil
	}
	return b
}
