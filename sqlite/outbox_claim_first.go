package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"math"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// firstAgo bounds how far back ClaimFirst looks, since it passes over all rows that were tried
// before and are due.
const firstAgo = 5 * time.Minute

// ClaimFirst implements holdfast.Store. After an unclean stop it gives nothing until all attempts
// that were in hand have ended: until then each claim is written to disk, in its order.
func (db *DB) ClaimFirst(ctx context.Context, slots map[string]int) ([]holdfast.Claim, error) {
	if owns, err := db.hands(ctx); err != nil || !owns {
		return nil, err
	}
	ls := db.lanes
	k := &tableClaim{db: db, slots: slots, first: true}
	var batch holdfast.Batch
	now := db.clock.now()
	ls.mu.Lock()
	for name, n := range slots {
		if ls.careful > 0 {
			break
		}
		l := ls.locked(name)
		had := len(batch.Claims)
		batch.Claims = ls.popFresh(l, n, now, batch.Claims) // only new rows are there
		if n -= len(batch.Claims) - had; n > 0 && l.needsTable(now) {
			k.table, k.wants = append(k.table, l), append(k.wants, n)
		}
	}
	ls.mu.Unlock()
	if len(k.table) > 0 {
		if err := k.run(ctx, &batch); err != nil && len(batch.Claims) == 0 {
			return nil, fmt.Errorf("claim: %w", err)
		}
	}
	return batch.Claims, nil
}

// readFirst claims up to want due rows that were never tried.
func (k *tableClaim) readFirst(c *conn, l *lane, want int) error {
	ls := k.db.lanes
	for want > 0 && k.bytes < claimBytes {
		now := k.db.writer.instant()
		ls.mu.Lock()
		due, seq := l.firstCursor()
		turn := l.rewinds
		ls.mu.Unlock()
		if from := now - micros(firstAgo); due < from {
			due, seq = from, 0
		}
		page, rows, full := want, 0, false
		err := c.each(claimFirst, func(v []driver.Value) error {
			rows++
			if full = want == 0 || k.bytes >= claimBytes; full {
				return errStop
			}
			return k.take(c, l, v, now, turn, &want)
		}, l.id, now, due, seq, int64(page))
		if err != nil || full {
			return err
		}
		if rows < page {
			ls.mu.Lock()
			if l.rewinds == turn {
				l.firstDue, l.firstSeq = max(l.firstDue, now), math.MaxInt64
			}
			ls.mu.Unlock()
			return nil
		}
	}
	return nil
}
