package sqlite

import (
	"context"
	"fmt"
	"time"
)

// Hasten implements holdfast.Store.
func (db *DB) Hasten(ctx context.Context, destination string, within time.Duration, seqs ...int64) (int, error) {
	count := 0
	err := db.writer.do(ctx, workFunc(func(tx *writeTx) error {
		now := tx.tick()
		count = 0
		for _, seq := range seqs {
			n, err := tx.exec(hastenOne, seq, now, after(now, within))
			if err != nil {
				return err
			}
			count += int(n)
		}
		if count > 0 {
			ls := db.lanes
			ls.mu.Lock()
			l := ls.locked(destination)
			ls.mu.Unlock()
			tx.fresh = append(tx.fresh, freshRow{lane: l, due: now, tried: true})
		}
		return nil
	}))
	if err != nil {
		return 0, fmt.Errorf("hasten %d messages for %s: %w", len(seqs), destination, err)
	}
	return count, nil
}
