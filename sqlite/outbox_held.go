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

// A message whose time is over if the clock is right, and is not by the time
// that was seen to pass, is held: it is neither delivered nor ended until the
// doubt is. One that a claim meets is put where claims do not look: from heldDue
// on in the order of what is due, below never.
const heldDue = int64(1) << 62

// judgeClaim says whether a message may be handed out, whose Expires is as it was
// set, and makes that what it is by the time that was seen to pass. One that was
// tried is held also while its receiver may have forgotten it, or not.
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

// heldUntil is until when a message is held at the latest; 0: it is not.
func (c *clock) heldUntil(expires sql.NullInt64, lasts int64) int64 {
	now := c.now()
	if !expires.Valid || c.judge(now, expires.Int64, lasts) != belief.Held {
		return 0
	}
	_, left := c.guard.Doubt(now)
	return min(now+left, c.guard.End(expires.Int64, lasts))
}

// holdRows puts messages where claims do not look.
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

// asked is how the upkeep stands to the clock.
type asked struct {
	some    atomic.Bool // messages may be held where claims do not look
	news    uint64      // of the guard, that are written down
	judged  uint64      // its verdicts, and one for the start, that have been acted on
	letting bool        // what is held is let go, to be judged again
	saved   int64       // when the clock was written without a need
	doubted bool        // people were told
}

// askClock asks whether anything may end now. What the belief in the clock
// decides is acted on here: what is held is let go a page at a time, and every
// expiry is looked at again.
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
		db.log.WarnContext(ctx, "nothing ends: the clock shows a time that cannot be", slog.Time("before", db.clock.sane))
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

// idleSave is how often the clock is written while nothing else is: what was
// seen to pass since then would be doubted after a crash.
const idleSave = 15 * time.Minute

// letGo makes a page of what is held due, so that claims judge it again.
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

// tellDoubt logs that the clock is doubted, once, and that it is no more.
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
