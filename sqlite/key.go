package sqlite

import "database/sql/driver"

// An ordering key has one head: the message that may be tried. Every other
// unfinished message of the key is blocked, which its due time says: its
// expiry, or never. So a blocked message is not found by claims, however many
// there are; whatever takes the head away calls keyLeft, in the same
// transaction.

// keyIsBlocked says whether a message other than seq is the key's head, or,
// in a strict lane, whether one before seq is parked.
func (tx *writeTx) keyIsBlocked(l *lane, key string, seq int64) (bool, error) {
	return tx.conn.one(keyBlocked, func([]driver.Value) error { return nil }, l.id, key, asBit(l.strict), seq)
}

// keyLeft makes the next message of a key its head.
func (tx *writeTx) keyLeft(l *lane, key string) error {
	if key == "" {
		return nil
	}
	var seq, due, expires int64
	pending := false
	if _, err := tx.conn.one(keyNext, func(v []driver.Value) error {
		seq, pending, due, expires = asInt(v[0]), asInt(v[1]) == 0, asInt(v[2]), never
		if v[3] != nil {
			expires = asInt(v[3])
		}
		return nil
	}, l.id, key, asBit(l.strict)); err != nil {
		return err
	}
	if !pending || due != expires {
		return nil // nobody waits, or the key has a head
	}
	at := tx.tick()
	if _, err := tx.exec(keyWake, seq, min(at, expires)); err != nil {
		return err
	}
	tx.fresh = append(tx.fresh, freshRow{lane: l, due: min(at, expires)})
	return nil
}
