package postgres

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// lose records a claim that may be committed, and that nobody will settle.
func (c *claims) lose(owner, number int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.number>>32 == owner { // otherwise it was given back together with the rest
		c.lost = append(c.lost, lostClaim{owner, number, time.Now()})
	}
}

// setAside keeps a claim in hand that nobody will settle. Other suspects do not wait for it.
func (c *claims) setAside(seq int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h, ok := c.held[seq]; ok && h.suspect {
		h.suspect = false
		c.held[seq] = h
		c.suspect--
	}
}

// letGo turns claims in hand that nobody will settle into lost ones.
func (c *claims) letGo(list []taken) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range list {
		h, ok := c.held[list[i].claim.Seq]
		if !ok || h.token != list[i].claim.Token {
			continue
		}
		delete(c.held, list[i].claim.Seq)
		if h.suspect {
			c.suspect--
		}
		if !slices.ContainsFunc(c.lost, func(l lostClaim) bool { return l.number == h.token }) {
			c.lost = append(c.lost, lostClaim{h.owner, h.token, time.Now()})
		}
	}
}

// unsure reports whether there may be claims that are not in hand.
func (c *claims) unsure() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.lost) > 0 || c.flying.Load() > 0
}

// findLost gives back the messages of lost claims. A transaction that is still open shows its rows
// only later, so each lost claim is looked for until the server has certainly ended its
// transaction.
func (db *DB) findLost(ctx context.Context) error {
	c := &db.claim
	turn, _ := db.past.is()
	c.mu.Lock()
	lost := slices.Clone(c.lost)
	c.mu.Unlock()
	if len(lost) == 0 {
		return nil
	}
	began, numbers := time.Now(), make([]int64, len(lost))
	for i, l := range lost {
		numbers[i] = l.number
	}
	lanes := []int32{}
	err := db.own(ctx, func(tx *ownTx) error {
		if err := tx.still(turn); err != nil {
			return err
		}
		lanes = lanes[:0]
		if err := tx.exec(readTables); err != nil {
			return err
		}
		if err := tx.query(giveBackLost, []any{lost[0].owner, numbers}, func(rows pgx.Rows) error {
			var lane int32
			err := rows.Scan(&lane)
			lanes = append(lanes, lane)
			tx.wakes(lane)
			return err
		}); err != nil {
			return err
		}
		return tx.endGivenUp()
	})
	if err != nil {
		return err
	}
	if len(lanes) > 0 {
		c.rewind(lanes...)
		db.log.WarnContext(ctx, "gave back claims whose commit was in doubt", slog.Int("claims", len(lost)))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost = slices.DeleteFunc(c.lost, func(l lostClaim) bool { return began.Sub(l.since) > 5*db.opts.Timeout })
	return nil
}
