package postgres

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// forgetPage is how many ids one call reads.
const forgetPage = 2000

// forgetting is the progress of the inbox's sweep between its calls.
type forgetting struct {
	mu    sync.Mutex
	after int64 // every row up to here was read in this round
	from  int64 // rounds begin here: all rows before it are deleted
	first int64 // the first row that this round has kept
}

// SweepInbox implements holdfast.InboxLog. Only one node sweeps at a time; for the others there is
// nothing to do. Kept messages that wait to be fetched are never swept.
func (db *DB) SweepInbox(ctx context.Context, retention time.Duration) (int, bool, error) {
	if err := db.usable(ctx); err != nil {
		return 0, false, fmt.Errorf("sweep inbox: %w", err)
	}
	now, err := db.askClock(ctx)
	if err != nil {
		return 0, false, fmt.Errorf("sweep inbox: %w", err)
	}
	ats, sizes := db.clock.leaps()
	f := &db.inbound.forgetting
	f.mu.Lock()
	defer f.mu.Unlock()
	var mine bool
	var gone, read, last, left int64
	if err := db.own(ctx, func(tx *ownTx) error {
		mine, gone, read, last, left = false, 0, 0, 0, 0
		var err error
		if mine, err = tx.upkeep(upkeepInbox); err != nil || !mine {
			return err
		}
		err = tx.query(forgetInbox, []any{max(f.after, f.from), forgetPage, db.clock.guard.Before(now, micros(retention)), now, ats, sizes}, func(rows pgx.Rows) error {
			return rows.Scan(&gone, &read, &last, &left)
		})
		tx.countInbox(-gone, 0)
		return err
	}); err != nil {
		return 0, false, fmt.Errorf("sweep inbox: %w", err)
	}
	if !mine {
		return 0, false, nil
	}
	return int(gone), f.looked(read == forgetPage, last, left), nil
}

// looked records how far a page came, and reports whether there are more rows.
func (f *forgetting) looked(full bool, last, left int64) bool {
	if f.first == 0 {
		f.first = left
	}
	if full {
		f.after = last
		return true
	}
	// Deleted rows stay in the index for a while. The next round starts behind them.
	if f.first > 0 {
		f.from = f.first - 1
	}
	f.after, f.first = 0, 0
	return false
}
