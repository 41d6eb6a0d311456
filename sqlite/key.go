package sqlite

import (
	"database/sql/driver"
)

// An ordering key has at most one head: the message that may be tried. Every
// other unfinished message of the key is marked as blocked, and due at its
// expiry or never, so that claims do not find it, however many there are.
// Whatever takes the head away calls keyLeft, in the same transaction.

// Whether a parked message stops its key, as hf_lane.strict has it.
const (
	orderLoose   int64 = 0
	orderStrict  int64 = 1
	orderFreeing int64 = 2 // loose, but what strict order has stopped is still being freed
)

func exists([]driver.Value) error { return nil }

// keyIsBlocked says whether the message seq of a key must wait: the key has a
// head, or, in a strict lane, a message before it is parked.
func (tx *writeTx) keyIsBlocked(l *lane, key string, seq int64) (bool, error) {
	blocked, err := tx.conn.one(keyHead, exists, l.id, key)
	if err != nil || blocked || l.order != orderStrict {
		return blocked, err
	}
	return tx.conn.one(keyHeld, exists, l.id, key, seq)
}

// keyLeft makes the first message of a key that waits its head, unless it
// must go on waiting.
func (tx *writeTx) keyLeft(l *lane, key string) error {
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
	if blocked, err := tx.keyIsBlocked(l, key, seq); err != nil || blocked {
		return err
	}
	due := min(max(tx.tick(), start), expires)
	if _, err := tx.exec(keyWake, seq, due); err != nil {
		return err
	}
	tx.fresh = append(tx.fresh, freshRow{lane: l, due: due})
	return nil
}
