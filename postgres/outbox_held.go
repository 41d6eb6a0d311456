package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/belief"
)

// A message is held if it has expired by the database's clock, but not by the time that was seen to
// pass. It is neither delivered nor ended until the doubt is over. When a claim meets one, it moves
// it out of sight of claims: to heldDue or later in the order of due times.
const heldDue = int64(1) << 62

// judge sorts the rows that were read: to be handed out, expired, or put aside. If the database's
// time is ahead of what this node has seen pass, another node may have seen it pass.
func (k *taking) judge(tx *ownTx) error {
	if len(k.rows) == 0 {
		return nil
	}
	c := k.db.clock
	if k.now > c.seen()+clockSlack {
		var r clockRow
		if err := tx.query(clockRead, nil, r.scan); err != nil {
			return err
		}
		c.adopt(&r, k.db.log)
	}
	now, rows := min(k.now, c.seen()+clockSlack), k.rows[:0]
	for i := range k.rows {
		t := &k.rows[i]
		seq := t.claim.Seq
		switch verdict := c.judgeRow(t, now); {
		case verdict == belief.Over:
			k.expired = append(k.expired, seq)
		case verdict == belief.Held:
			k.putAside(seq, heldDue+seq)
		case t.blocked:
			k.putAside(seq, t.hold.ends)
		default:
			rows = append(rows, *t)
		}
	}
	k.rows = rows
	if len(k.aside) == 0 {
		return nil
	}
	seqs := slices.Sorted(maps.Keys(k.aside))
	due := make([]int64, len(seqs))
	for i, seq := range seqs {
		due[i] = k.aside[seq]
	}
	return tx.exec(putAside, seqs, k.owner, due)
}

func (k *taking) putAside(seq, due int64) {
	if k.aside == nil {
		k.aside = map[int64]int64{}
	}
	k.aside[seq] = due
}

// judgeRow decides whether a message may be handed out, and fills in its ages. A message that was
// tried before is also held while it is uncertain whether its receiver has forgotten it.
func (c *clock) judgeRow(t *taken, now int64) belief.Verdict {
	verdict := belief.Lives
	t.claim.Expires, t.hold.ends = -1, never
	if t.expires != never {
		verdict = c.guard.Judge(now, t.expires, t.lasts)
		t.hold.ends = c.guard.End(t.expires, t.lasts)
		t.claim.Expires = duration(max(t.hold.ends-now, 0))
	}
	if t.first == nil {
		return verdict
	}
	a := &t.claim.Message.Attempt
	a.FirstAgo = duration(c.guard.Age(now, *t.first))
	if memory := holdfast.DefaultInboxRetention; verdict == belief.Lives && !a.Forced && a.FirstAgo < memory && duration(c.guard.Claimed(now, *t.first)) >= memory {
		return belief.Held
	}
	return verdict
}

// heldUntil returns the latest end of a message's hold, or 0 if it is not held.
func (c *clock) heldUntil(expires, lasts int64) int64 {
	now := c.seen()
	if c.guard.Judge(now, expires, lasts) != belief.Held {
		return 0
	}
	_, left := c.guard.Doubt(now)
	return min(now+left, c.guard.End(expires, lasts))
}

// letGoHeld makes a page of held messages due, so that claims judge them again.
func (db *DB) letGoHeld(ctx context.Context) (more bool, err error) {
	err = db.own(ctx, func(tx *ownTx) error {
		var seqs []int64
		if err := tx.query(someHeld, []any{sweepWrite}, func(rows pgx.Rows) error {
			var seq int64
			err := rows.Scan(&seq, nil)
			seqs = append(seqs, seq)
			return err
		}); err != nil {
			return err
		}
		if more = len(seqs) == sweepWrite; len(seqs) == 0 {
			return nil
		}
		slices.Sort(seqs)
		return tx.query(letGo, []any{seqs}, func(rows pgx.Rows) error {
			var lane int32
			err := rows.Scan(&lane)
			tx.wakes(lane)
			return err
		})
	})
	if err != nil {
		return false, fmt.Errorf("let go what is held: %w", err)
	}
	return more, nil
}

// actOnClock releases held messages after the belief in the clock has changed, and once after a
// start, a page at a time.
func (db *DB) actOnClock(ctx context.Context) (more bool, err error) {
	c := db.clock
	news := c.guard.Verdicts() + 1
	c.mu.Lock()
	done := c.acted == news
	c.mu.Unlock()
	if done {
		return false, nil
	}
	if more, err = db.letGoHeld(ctx); err != nil || more {
		return more, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.acted = news
	return false, nil
}
