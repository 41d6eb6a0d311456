package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"encoding/binary"
	"fmt"
	"log/slog"

	"github.com/holdfast-mq/holdfast"
)

// messageHash covers everything that a delivery sends or obeys, so that a damaged row can be told
// from a sound one. Eight bytes suffice against accidents. They are no protection against an
// adversary, who could write the hash as well.
func messageHash(m *holdfast.Message, headers, retry string) int64 {
	b := make([]byte, 0, 512)
	for _, part := range [...]string{
		string(m.ID), m.Source, m.Destination, string(m.Kind), m.Endpoint, m.OrderingKey, m.CorrelationID, headers, retry,
	} {
		b = binary.BigEndian.AppendUint64(b, uint64(len(part)))
		b = append(b, part...)
	}
	// The TTL as it is read back: the longest one changes on its way to microseconds and back.
	b = binary.BigEndian.AppendUint64(b, uint64(micros(duration(micros(m.TTL)))))
	h := sha256.New()
	_, _ = h.Write(b) // never fails
	_, _ = h.Write(m.Payload)
	return int64(binary.BigEndian.Uint64(h.Sum(b[:0])))
}

// keptHash is messageHash for a message that waits to be fetched.
func keptHash(m *holdfast.Message, headers string) int64 {
	return messageHash(&holdfast.Message{
		ID: m.ID, Source: m.Source, Kind: m.Kind, Endpoint: m.Endpoint, Payload: m.Payload, CorrelationID: m.CorrelationID,
	}, headers, "")
}

// intact reports whether a row of claimColumns is what was accepted.
func intact(m *holdfast.Message, v []driver.Value) bool {
	hash, ok := v[17].(int64)
	return ok && hash == messageHash(m, asText(v[13]), asText(v[15]))
}

// keptIntact reports whether a kept message is what was accepted. It takes the headers and the hash
// from the message's row.
func keptIntact(m *holdfast.Message, headers string, hash driver.Value) bool {
	want, ok := hash.(int64)
	return ok && want == keptHash(m, headers)
}

// answerHash covers a stored response and the id of its message. It is nil if there is no response.
func answerHash(id holdfast.ID, response []byte) driver.Value {
	if len(response) == 0 {
		return nil
	}
	return messageHash(&holdfast.Message{ID: id, Payload: response}, "", "")
}

// answerIntact reports whether a stored response is what was answered.
func answerIntact(id holdfast.ID, response []byte, hash driver.Value) bool {
	return answerHash(id, response) == hash
}

// lostAnswer is the note that a duplicate gets if the stored answer is damaged.
const lostAnswer = "the stored answer is damaged: it does not match the hash of what was answered, and is not given"

// answered returns the receipt for a duplicate. It has the stored response unless that is damaged.
// In both cases the message was processed.
func (db *DB) answered(m *holdfast.Message, response []byte, hash driver.Value) holdfast.Receipt {
	r := holdfast.Receipt{ID: m.ID, State: holdfast.Delivered, Duplicate: true, Response: response}
	if !answerIntact(m.ID, response, hash) {
		r.Response, r.Note = nil, lostAnswer
		db.log.Error("a stored answer is damaged: the duplicate gets none", slog.String("message_id", string(m.ID)), slog.String("source", m.Source))
	}
	return r
}

// dropAnswers removes damaged answers. Their hashes remain and show that there were answers, so
// that later checks count them as known.
func (db *DB) dropAnswers(ctx context.Context, seqs []int64) error {
	if len(seqs) == 0 {
		return nil
	}
	return db.writer.do(ctx, workFunc(func(tx *writeTx) error {
		for _, seq := range seqs {
			if _, err := tx.exec(dropResponse, seq); err != nil {
				return fmt.Errorf("drop the damaged answer of inbox row %d: %w", seq, err)
			}
		}
		return nil
	}))
}

// parkBroken parks messages whose content is not what was accepted. So nothing wrong is sent, and
// the others go on (edge case 21).
func (db *DB) parkBroken(ctx context.Context, seqs []int64) error {
	for _, seq := range seqs {
		err := db.writer.do(ctx, workFunc(func(tx *writeTx) error { return tx.parkBroken(seq) }))
		if err != nil {
			return fmt.Errorf("park seq %d, which is damaged: %w", seq, err)
		}
	}
	return nil
}

// checkNames tells a damaged message from damaged names, which many messages share. An index holds
// the names a second time, where a salvage finds them.
func (tx *writeTx) checkNames(seq int64) error {
	_, err := tx.conn.one(brokenNames, func(v []driver.Value) error {
		if v[0] == nil || v[1] == nil || v[0] != v[2] || v[1] != v[3] {
			return fmt.Errorf("%w: the names of route %v differ from their indexes", ErrDamaged, v[0])
		}
		return nil
	}, seq)
	return err
}

// brokenText is the last error of a message that was parked for its content.
const brokenText = "the stored message is damaged: it does not match the hash of what was accepted, and was not sent"

func (tx *writeTx) parkBroken(seq int64) error {
	var state holdfast.State
	var failures, tries, cycle int64
	var okey, destination string
	found, err := tx.conn.one(brokenRow, func(v []driver.Value) error {
		state, failures, tries, cycle = holdfast.State(asInt(v[0])), asInt(v[1]), asInt(v[2]), asInt(v[3])
		okey, destination = asText(v[4]), asText(v[5])
		return nil
	}, seq)
	if err != nil || !found || state != holdfast.Pending {
		return err
	}
	if err := tx.checkNames(seq); err != nil {
		return err
	}
	l, err := tx.lane(destination)
	if err != nil {
		return err
	}
	if !tx.w.db.lanes.untake(l, seq) {
		return nil
	}
	if _, err := tx.exec(settleAside, seq, int64(state), tries, failures, tx.tick(), nil, string(holdfast.ReasonUndecodable), int64(holdfast.Parked)); err != nil {
		return err
	}
	if _, err := tx.exec(emptyBody, seq); err != nil { // an empty body if there is none, so that people see the row all the same
		return err
	}
	tx.moves = append(tx.moves, change{l, state, holdfast.Parked})
	tx.after = append(tx.after, func() {
		tx.w.db.log.Error("a stored message is damaged: parked", slog.Int64("seq", seq), slog.String("destination", destination))
	})
	if err := tx.event(&event{
		message: seq, kind: holdfast.Attempted, state: holdfast.Parked, cycle: int(cycle), attempt: int(tries), outcome: holdfast.NotStarted,
		reason: string(holdfast.ReasonUndecodable), error: brokenText,
	}); err != nil {
		return err
	}
	return tx.placeKey(l, okey)
}
