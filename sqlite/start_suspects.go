package sqlite

import (
	"database/sql/driver"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/belief"
)

// After an unclean stop, claims are written to disk before they are handed out, so that the next
// owner knows what was in hand when the process died. This ends after so many attempts have ended
// that the process seems to survive them.
//
// A message that kills the process must run out of attempts, but other messages in hand must not
// pay for it. So a death is charged if exactly one message was in hand. Otherwise all messages in
// hand become suspects. A tenth of the suspects at a time is tried before anything else, and the
// last few are tried alone. Each attempt that ends lets one more in.
const (
	carefulSettles = 1000
	fewSuspects    = 10
)

// everything means that the number of claims in hand is not limited.
const everything = math.MaxInt

// reclaim makes claims on disk pending again: claims of a process that died, or suspects that
// another process has handed over untried.
func (db *DB) reclaim(c *conn, handedOver bool) error {
	ls := db.lanes
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if err := c.each(claimedRows, func(v []driver.Value) error {
		// With the lane's number: a suspect is claimed before the lane is read.
		l := ls.locked(asText(v[1]))
		l.id, l.order = asInt(v[2]), asInt(v[3])
		ls.suspects[asInt(v[0])] = l
		return nil
	}); err != nil {
		return fmt.Errorf("read claims: %w", err)
	}
	inHand := len(ls.suspects)
	if inHand == 0 {
		return nil
	}
	ls.most = max(inHand/10, 1)
	if handedOver { // the death was charged before
		_, err := c.exec(forgetClaims)
		return err
	}
	alone := inHand == 1
	now := db.clock.now()
	for _, id := range []statement{reclaimEvents, reclaimClaims} {
		if _, err := c.exec(id, now, asBit(alone)); err != nil {
			return fmt.Errorf("reclaim: %w", err)
		}
	}
	db.log.Warn("the process died during attempts", slog.Int("in_hand", inHand), slog.Bool("charged", alone))
	return nil
}

// roomPoll is when to try again while as many claims as allowed are in hand. An attempt that ends
// wakes its dispatcher earlier.
const roomPoll = 100 * time.Millisecond

// room returns how many more claims may be handed out.
func (ls *lanes) room() int {
	if ls.careful == 0 || ls.most == everything {
		return everything
	}
	return max(ls.most-len(ls.leases), 0)
}

// share returns how many claims one of the remaining lanes may get.
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
func (ls *lanes) survived(seq int64) {
	delete(ls.suspects, seq)
	if ls.careful > 0 {
		ls.careful--
	}
	if ls.most < everything {
		ls.most++
	}
}

// suspected lists the suspects that can be tried now, oldest first. It reports whether one of the
// last few is being tried.
func (ls *lanes) suspected(slots map[string]int) (free []int64, tried bool) {
	for seq, l := range ls.suspects {
		if _, leased := ls.leases[seq]; leased {
			tried = true
		} else if slots[l.name] > 0 {
			free = append(free, seq)
		}
	}
	slices.Sort(free)
	return free, tried && len(ls.suspects) <= fewSuspects
}

// readSuspects claims suspects, and reports whether other messages must wait.
func (k *tableClaim) readSuspects(c *conn) (wait bool, err error) {
	ls := k.db.lanes
	ls.mu.Lock()
	free, wait := ls.suspected(k.slots)
	room, few := ls.room(), len(ls.suspects) <= fewSuspects
	ls.mu.Unlock()
	for _, seq := range free {
		l := ls.suspect(seq)
		if len(k.claims) >= room || k.got[l] >= k.slots[l.name] {
			continue
		}
		had, now := len(k.claims), k.db.writer.instant()
		if _, err := c.one(claimOne, func(v []driver.Value) error {
			claim, _, err := k.db.readClaim(c, l, v)
			if err == nil && !intact(&claim.Message, v) {
				k.broken = append(k.broken, seq)
				return nil
			}
			if err == nil && k.db.clock.judgeClaim(&claim, asInt(v[18]), now) == belief.Lives {
				k.claims, k.lanes = append(k.claims, claim), append(k.lanes, l)
				k.got[l]++
			}
			return err
		}, seq, now); err != nil {
			return false, err
		}
		if len(k.claims) == had {
			k.cleared = append(k.cleared, seq) // not pending any more, or its time is over
		}
	}
	return wait || few && len(k.claims) > 0, nil
}

func (ls *lanes) suspect(seq int64) *lane {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.suspects[seq]
}

// apply claims rows on disk.
func (k *tableClaim) apply(tx *writeTx) error {
	k.claims, k.lanes, k.expired, k.held, k.broken, k.cleared, k.bytes, k.got = nil, nil, nil, nil, nil, nil, 0, map[*lane]int{}
	if !k.db.owns.Load() {
		return nil
	}
	tx.undo = append(tx.undo, k.unread)
	wait, err := k.readSuspects(tx.conn)
	if err != nil {
		return err
	}
	if err := k.writeDown(tx, 0); err != nil {
		return err
	}
	if suspects := len(k.claims); !wait {
		if err := k.read(tx.conn); err != nil {
			return err
		}
		if err := k.writeDown(tx, suspects); err != nil {
			return err
		}
	}
	tx.after = append(tx.after, k.lease)
	return nil
}

func (k *tableClaim) writeDown(tx *writeTx, from int) error {
	for i := from; i < len(k.claims); i++ {
		c := &k.claims[i]
		n, err := tx.exec(claimDurably, c.Seq)
		if err == nil && n != 1 {
			err = fmt.Errorf("it is not pending: %w", holdfast.ErrState)
		}
		if err != nil {
			return fmt.Errorf("claim %s: %w", c.Message.ID, err)
		}
	}
	return nil
}

// unread forgets what memory learned from a transaction that was rolled back: its rows and names
// may be different next time.
func (k *tableClaim) unread() {
	clear(k.db.names)
	k.db.lanes.mu.Lock()
	defer k.db.lanes.mu.Unlock()
	for _, l := range k.table {
		k.db.lanes.rewind(l)
	}
}

// lease leases claims that are on disk.
func (k *tableClaim) lease() {
	ls := k.db.lanes
	now := k.db.writer.instant()
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for i := range k.claims {
		k.claims[i] = ls.lease(k.lanes[i], k.claims[i], now, true)
	}
	for _, seq := range k.cleared {
		delete(ls.suspects, seq)
	}
}
