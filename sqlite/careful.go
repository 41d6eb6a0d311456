package sqlite

import (
	"database/sql/driver"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// After an unclean stop claims are written to disk before they are handed
// out, so that the next owner knows what was in hand when the process died,
// until so many attempts have ended that the process survives them.
//
// A message that kills the process must run out of attempts, and those that
// only happened to be in hand must not pay for it. So a death is charged when
// one message alone was in hand. After a death with more of them fewer are in
// hand at a time, a tenth, until the culprit is alone; each attempt that ends
// lets one more in.
const carefulSettles = 1000

// everything is no bound of what may be in hand.
const everything = math.MaxInt

// reclaim gives claims that were written down back to pending.
func (db *DB) reclaim(c *conn) error {
	inHand := 0
	if _, err := c.one(countClaimed, func(v []driver.Value) error {
		inHand = int(asInt(v[0]))
		return nil
	}); err != nil {
		return fmt.Errorf("count claims: %w", err)
	}
	if inHand == 0 {
		return nil
	}
	alone := inHand == 1
	now := db.clock.now()
	for _, id := range []statement{reclaimEvents, reclaimClaims} {
		if _, err := c.exec(id, now, asBit(alone)); err != nil {
			return fmt.Errorf("reclaim: %w", err)
		}
	}
	db.lanes.most = max(inHand/10, 1)
	db.log.Warn("the process died during attempts", slog.Int("in_hand", inHand), slog.Bool("charged", alone))
	return nil
}

// roomPoll is when to ask again while as many are in hand as may be. An
// attempt that ends wakes its dispatcher earlier.
const roomPoll = 100 * time.Millisecond

// room is how many more claims may be handed out.
func (ls *lanes) room() int {
	if ls.careful == 0 || ls.most == everything {
		return everything
	}
	return max(ls.most-len(ls.leases), 0)
}

// share is what one of the lanes that are still to be read may get.
func (k *tableClaim) share(lanes int) int {
	if !k.durable {
		return everything
	}
	k.db.lanes.mu.Lock()
	defer k.db.lanes.mu.Unlock()
	room := k.db.lanes.room()
	if room == everything {
		return everything
	}
	return (max(room-len(k.claims), 0) + lanes - 1) / lanes
}

// survived notes that an attempt has ended and the process lives.
func (ls *lanes) survived() {
	if ls.careful > 0 {
		ls.careful--
	}
	if ls.most < everything {
		ls.most++
	}
}

// apply claims rows on disk.
func (k *tableClaim) apply(tx *writeTx) error {
	k.claims, k.lanes, k.expired, k.bytes = nil, nil, nil, 0
	tx.undo = append(tx.undo, k.unread)
	if err := k.read(tx.conn); err != nil {
		return err
	}
	for i := range k.claims {
		c := &k.claims[i]
		n, err := tx.exec(claimDurably, c.Seq)
		if err == nil && n != 1 {
			err = fmt.Errorf("it is not pending: %w", holdfast.ErrState)
		}
		if err != nil {
			return fmt.Errorf("claim %s: %w", c.Message.ID, err)
		}
	}
	tx.after = append(tx.after, k.lease)
	return nil
}

// unread takes back what memory learned from a transaction that did not
// happen: rows and names in it may be others next time.
func (k *tableClaim) unread() {
	clear(k.db.names)
	k.db.lanes.mu.Lock()
	defer k.db.lanes.mu.Unlock()
	for _, l := range k.table {
		k.db.lanes.rewind(l)
	}
}

// lease takes claims that have been written down.
func (k *tableClaim) lease() {
	ls := k.db.lanes
	now := k.db.writer.instant()
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for i := range k.claims {
		k.claims[i] = ls.lease(k.lanes[i], k.claims[i], now, true)
	}
}
