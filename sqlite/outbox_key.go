package sqlite

import (
	"database/sql/driver"

	"github.com/holdfast-mq/holdfast"
)

// An ordering key has at most one head: the message that may be tried. Every other unfinished
// message of the key is blocked: it is due at its expiry or never, so that claims do not find it,
// however many there are. Code that removes the head, or makes a message wait again, calls placeKey
// in the same transaction.

// Values of hf_lane.strict: whether a parked message stops its key.
const (
	orderLoose   int64 = 0
	orderStrict  int64 = 1
	orderFreeing int64 = 2 // loose, but keys that strict order has stopped are still being freed
)

func exists([]driver.Value) error { return nil }

// keyIsBlocked reports whether the message seq of a key must wait: the key has a head, or, in a
// strict lane, an earlier message is parked.
func (tx *writeTx) keyIsBlocked(l *lane, key string, seq int64) (bool, error) {
	blocked, err := tx.conn.one(keyHead, exists, l.id, key)
	if err != nil || blocked || l.order != orderStrict {
		return blocked, err
	}
	return tx.conn.one(keyHeld, exists, l.id, key, seq)
}

// placeKey makes the first waiting message of a key its head, if the key has no head. It also
// replaces a head that was accepted later and that nobody has in hand. In a strict lane, an earlier
// parked message keeps the key waiting.
func (tx *writeTx) placeKey(l *lane, key string) error {
	if key == "" {
		return nil
	}
	var seq, start int64
	expires := int64(never)
	found, err := tx.conn.one(keyNext, func(v []driver.Value) error {
		seq, start = asInt(v[0]), asInt(v[2])
		if v[1] != nil {
			expires = asInt(v[1])
		}
		return nil
	}, l.id, key)
	if err != nil || !found {
		return err
	}
	if l.order == orderStrict {
		if held, err := tx.conn.one(keyHeld, exists, l.id, key, seq); err != nil || held {
			return err
		}
	}
	if free, err := tx.freeHead(l, key, seq); err != nil || !free {
		return err
	}
	due := min(max(tx.tick(), start), expires)
	if _, err := tx.exec(keyWake, seq, due); err != nil {
		return err
	}
	tx.fresh = append(tx.fresh, freshRow{lane: l, due: due})
	return nil
}

// freeHead reports whether the message next may be the head of its key. A later message that is the
// head, and that nobody has in hand, steps back: it waits for its key, and then for what it has
// waited for until now.
func (tx *writeTx) freeHead(l *lane, key string, next int64) (bool, error) {
	var seq, due int64
	var state holdfast.State
	expires := int64(never)
	found, err := tx.conn.one(keyHead, func(v []driver.Value) error {
		seq, state, due = asInt(v[0]), holdfast.State(asInt(v[1])), asInt(v[2])
		if v[3] != nil {
			expires = asInt(v[3])
		}
		return nil
	}, l.id, key)
	if err != nil || !found {
		return err == nil, err
	}
	if seq < next || state != holdfast.Pending || !tx.takesBack(l, seq) {
		return false, nil
	}
	if _, err := tx.exec(keyBack, seq, expires); err != nil {
		return false, err
	}
	_, err = tx.exec(setStart, seq, due)
	return true, err
}
