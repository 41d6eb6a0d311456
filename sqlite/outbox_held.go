package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/belief"
)

// A message is held if its time is over by the clock, but not by the time that was seen to pass. It
// is neither delivered nor ended until the doubt ends. When a claim meets such a message, the
// message gets a due time that claims ignore: from heldDue on, in the order of the due times, and
// below never.
const heldDue = int64(1) << 62

// judgeClaim decides whether a message may be handed out. It takes the claim's Expires as the row
// has it, and corrects it by the time that was seen to pass. It also holds a message that was tried
// before if its receiver may have forgotten it by the clock, but not by the time seen to pass.
func (c *clock) judgeClaim(claim *holdfast.Claim, lasts, now int64) belief.Verdict {
	verdict := belief.Lives
	if end := int64(claim.Expires); end >= 0 {
		verdict = c.judge(now, end, lasts)
		claim.Expires = time.Duration(c.guard.End(end, lasts))
	}
	first, memory := int64(claim.Message.Attempt.FirstAgo), micros(holdfast.DefaultInboxRetention)
	if verdict != belief.Lives || first == 0 || claim.Message.Attempt.Forced || now-first < memory {
		return verdict
	}
	if c.guard.Claimed(now, first) >= memory && c.guard.Age(now, first) < memory {
		return belief.Held
	}
	return verdict
}

// heldUntil returns the latest time until which a message is held; 0: it is not held.
func (c *clock) heldUntil(expires sql.NullInt64, lasts int64) int64 {
	now := c.now()
	if !expires.Valid || c.judge(now, expires.Int64, lasts) != belief.Held {
		return 0
	}
	_, left := c.guard.Doubt(now)
	return min(now+left, c.guard.End(expires.Int64, lasts))
}

// holdRows gives messages a due time that claims ignore.
func (db *DB) holdRows(ctx context.Context, seqs []int64) error {
	db.sweeps.asked.some.Store(true)
	for len(seqs) > 0 {
		n := min(len(seqs), sweepWrite)
		page := seqs[:n]
		if err := db.writer.do(ctx, workFunc(func(tx *writeTx) error {
			for _, seq := range page {
				if _, err := tx.exec(holdOne, seq); err != nil {
					return err
				}
			}
			return nil
		})); err != nil {
			return fmt.Errorf("hold %d messages: %w", n, err)
		}
		seqs = seqs[n:]
	}
	return nil
}

// asked is the state of the upkeep with regard to the clock.
type asked struct {
	some    atomic.Bool // some messages may have a due time that claims ignore
	news    uint64      // number of the guard's last news that was written
	judged  uint64      // number of the guard's verdicts, plus one for the start, that were acted on
	letting bool        // held messages are being released, to be judged again
	saved   int64       // when the clock was last written for its own sake
	doubted bool        // people were told of the doubt
}

// askClock finds out whether anything may end now. It acts on the guard's verdicts: it releases
// held messages a page at a time, and has every expiry looked at again.
func (db *DB) askClock(ctx context.Context) (may, more bool, err error) {
	a := &db.sweeps.asked
	sane, _ := db.clock.look()
	db.tellDoubt()
	now := db.clock.now()
	if news := db.clock.guard.News(); news != a.news || now-a.saved > micros(idleSave) {
		if err := db.writer.do(ctx, workFunc(func(*writeTx) error { return nil })); err != nil { // saveClock
			return false, false, fmt.Errorf("note the clock: %w", err)
		}
		a.saved, a.news = now, news
	}
	if verdicts := db.clock.guard.Verdicts() + 1; verdicts != a.judged {
		a.judged, a.letting, db.sweeps.scanning = verdicts, true, false
		db.lanes.expiresFrom(0)
	}
	if !sane {
		db.log.WarnContext(ctx, "nothing expires and nothing is deleted: the clock shows an impossible time", slog.Time("before", db.clock.sane))
		return false, false, nil
	}
	if a.letting && a.some.Swap(false) {
		if more, err = db.letGo(ctx); err != nil || more {
			a.some.Store(true)
			return true, more, err
		}
	}
	a.letting = false
	return true, false, nil
}

// idleSave is how often the clock is written while nothing else is. After a crash, the store doubts
// the time that has passed since then.
const idleSave = 15 * time.Minute

// letGo makes a page of held messages due, so that claims judge them again.
func (db *DB) letGo(ctx context.Context) (more bool, err error) {
	err = db.writer.do(ctx, workFunc(func(tx *writeTx) error {
		more = false
		var lanes []string
		if err := tx.conn.rows(queries[laneNames], func(v []driver.Value) error {
			lanes = append(lanes, asText(v[0]))
			return nil
		}); err != nil {
			return err
		}
		left := sweepWrite
		for _, name := range lanes {
			l, err := tx.lane(name)
			if err != nil {
				return err
			}
			var seqs []int64
			if err := tx.conn.each(heldOf, func(v []driver.Value) error {
				seqs = append(seqs, asInt(v[0]))
				return nil
			}, l.id, int64(left)); err != nil {
				return err
			}
			for _, seq := range seqs {
				if _, err := tx.exec(letGo, seq, tx.now); err != nil {
					return err
				}
			}
			if len(seqs) > 0 {
				tx.fresh = append(tx.fresh, freshRow{lane: l, due: 0})
			}
			if left -= len(seqs); left == 0 {
				more = true
				return nil
			}
		}
		return nil
	}))
	if err != nil {
		return false, fmt.Errorf("let go what is held: %w", err)
	}
	return more, nil
}

// tellDoubt logs once when the clock is doubted, and once when it no longer is.
func (db *DB) tellDoubt() {
	doubt, left := db.clock.guard.Doubt(db.clock.now())
	a := &db.sweeps.asked
	switch {
	case doubt > 0 && !a.doubted:
		a.doubted = true
		db.log.Warn("time has passed that only the clock knows of: what would end because of it is held",
			slog.Duration("doubted", duration(doubt)), slog.Duration("for_at_most", duration(left)))
	case doubt == 0 && a.doubted:
		a.doubted = false
		db.log.Info("the clock is believed")
	}
}

// Doubt implements holdfast.Doubting.
func (db *DB) Doubt() holdfast.Doubt {
	_, doubt := db.clock.look()
	_, left := db.clock.guard.Doubt(db.clock.now())
	return holdfast.Doubt{Claimed: doubt, Left: duration(left), Held: db.held.Load()}
}

// HearTime implements holdfast.Doubting.
func (db *DB) HearTime(at time.Time) {
	if _, doubt := db.clock.look(); doubt == 0 {
		return
	}
	if wall, _ := db.clock.read(); wall.Sub(at).Abs() <= holdfast.ClockSkew {
		db.clock.guard.Confirm()
	} else {
		db.clock.guard.Contradict(db.clock.now())
	}
}
