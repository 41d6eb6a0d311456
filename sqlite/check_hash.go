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

// messageHash covers everything that a delivery sends or obeys, so that a row
// of a damaged file can be told from one that is sound. Eight bytes are enough
// against accidents; nothing here is meant against an adversary, who could
// write the hash as well.
func messageHash(m *holdfast.Message, headers, retry string) int64 {
	b := make([]byte, 0, 512)
	for _, part := range [...]string{
		string(m.ID), m.Source, m.Destination, string(m.Kind), m.Endpoint, m.OrderingKey, m.CorrelationID, headers, retry,
	} {
		b = binary.BigEndian.AppendUint64(b, uint64(len(part)))
		b = append(b, part...)
	}
	// As it is read back: the longest does not fit into microseconds and back.
	b = binary.BigEndian.AppendUint64(b, uint64(micros(duration(micros(m.TTL)))))
	h := sha256.New()
	_, _ = h.Write(b) // never fails
	_, _ = h.Write(m.Payload)
	return int64(binary.BigEndian.Uint64(h.Sum(b[:0])))
}

// keptHash is messageHash of a message that waits to be fetched.
func keptHash(m *holdfast.Message, headers string) int64 {
	return messageHash(&holdfast.Message{
		ID: m.ID, Source: m.Source, Kind: m.Kind, Endpoint: m.Endpoint, Payload: m.Payload, CorrelationID: m.CorrelationID,
	}, headers, "")
}

// intact says whether a row of claimColumns is what was accepted.
func intact(m *holdfast.Message, v []driver.Value) bool {
	hash, ok := v[17].(int64)
	return ok && hash == messageHash(m, asText(v[13]), asText(v[15]))
}

// keptIntact says whether a kept message is what was accepted, by the
// headers and the hash that its row holds.
func keptIntact(m *holdfast.Message, headers string, hash driver.Value) bool {
	want, ok := hash.(int64)
	return ok && want == keptHash(m, headers)
}

// answerHash covers a stored response, and whose it is. Nil: there is none.
func answerHash(id holdfast.ID, response []byte) driver.Value {
	if len(response) == 0 {
		return nil
	}
	return messageHash(&holdfast.Message{ID: id, Payload: response}, "", "")
}

// answerIntact says whether a stored response is what was answered.
func answerIntact(id holdfast.ID, response []byte, hash driver.Value) bool {
	return answerHash(id, response) == hash
}

// lostAnswer is the note to a duplicate whose answer was damaged.
const lostAnswer = "the stored answer is damaged: it does not match the hash of what was answered, and is not given"

// answered is what a duplicate gets: the stored response, if that is what was
// answered. If not, the message was processed all the same.
func (db *DB) answered(m *holdfast.Message, response []byte, hash driver.Value) holdfast.Receipt {
	r := holdfast.Receipt{ID: m.ID, State: holdfast.Delivered, Duplicate: true, Response: response}
	if !answerIntact(m.ID, response, hash) {
		r.Response, r.Note = nil, lostAnswer
		db.log.Error("a stored answer is damaged: the duplicate gets none", slog.String("message_id", string(m.ID)), slog.String("source", m.Source))
	}
	return r
}

// dropAnswers removes damaged answers. Their hashes stay and say that there were
// some, which is no news from then on.
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

// parkBroken sets messages aside whose content is not what was accepted, so
// that nothing wrong is sent and the others go on (edge case 21).
func (db *DB) parkBroken(ctx context.Context, seqs []int64) error {
	for _, seq := range seqs {
		err := db.writer.do(ctx, workFunc(func(tx *writeTx) error { return tx.parkBroken(seq) }))
		if err != nil {
			return fmt.Errorf("park seq %d, which is damaged: %w", seq, err)
		}
	}
	return nil
}

// checkNames tells a damaged message from damaged names, which many share: those
// stand in an index a second time, where a salvage finds them.
func (tx *writeTx) checkNames(seq int64) error {
	_, err := tx.conn.one(brokenNames, func(v []driver.Value) error {
		if v[0] == nil || v[1] == nil || v[0] != v[2] || v[1] != v[3] {
			return fmt.Errorf("%w: the names of route %v are not those of its index", ErrDamaged, v[0])
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
	if _, err := tx.exec(emptyBody, seq); err != nil { // if there is none: people see the row all the same
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
