package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Hasten implements holdfast.Store.
func (db *DB) Hasten(ctx context.Context, destination string, within time.Duration, seqs ...int64) (int, error) {
	count := 0
	err := db.own(ctx, func(tx *ownTx) error {
		count = 0
		return tx.query(hastenMany, []any{seqs, micros(within)}, func(rows pgx.Rows) error {
			var lane int32
			if err := rows.Scan(&lane); err != nil {
				return err
			}
			if count == 0 {
				tx.wakes(lane)
				tx.after = append(tx.after, func() { db.claim.rewindTried(lane) })
			}
			count++
			return nil
		})
	})
	if err != nil {
		return 0, fmt.Errorf("hasten %d messages for %s: %w", len(seqs), destination, err)
	}
	return count, nil
}
