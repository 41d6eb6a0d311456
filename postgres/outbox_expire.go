package postgres

import (
	"context"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
)

// sweepPage is how many rows of a table one call looks at, sweepWrite how many
// it changes in one transaction.
const (
	sweepPage  = 5000
	sweepWrite = 500
)

// sweeps holds where the sweeps of this node stand between their calls.
type sweeps struct {
	mu             sync.Mutex
	queued, parked expiries
	aside          bool  // waiting rows are done, parked ones come
	purged         int64 // every message up to here has been looked at in this purge
	from           int64 // purges begin here: all before it is deleted
	left           int64 // the first message that this purge has left standing

	notified, notifiedSeq int64 // the last notification that this purge has looked at
}

// Expire implements holdfast.Sweepable. Rows that claims find in time expire
// there; this finds the rest: those of lanes that nobody claims from, and
// parked ones. Of several nodes one does it.
func (db *DB) Expire(ctx context.Context) (expired int, more bool, err error) {
	if err := db.usable(ctx); err != nil {
		return 0, false, fmt.Errorf("expire: %w", err)
	}
	s := &db.sweeps
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := db.askClock(ctx)
	if err != nil {
		return 0, false, fmt.Errorf("expire: %w", err)
	}
	if more, err := db.actOnClock(ctx); err != nil || more {
		return 0, more, err
	}
	x, find, end, from := &s.queued, expiredQueued, expireQueued, holdfast.Pending
	if s.aside {
		x, find, end, from = &s.parked, expiredParked, expireParked, holdfast.Parked
	}
	next, mine := *x, false
	if err := db.own(ctx, func(tx *ownTx) (err error) {
		next, expired = *x, 0
		if mine, err = tx.upkeep(upkeepExpire); err != nil || !mine {
			return err
		}
		if err := tx.endGivenUp(); err != nil { // of a store that was moved here
			return err
		}
		list, err := next.page(tx, find, now)
		if err != nil {
			return err
		}
		return tx.expireRows(list, end, from, &expired)
	}); err != nil {
		return 0, false, fmt.Errorf("expire: %w", err)
	}
	if !mine {
		return 0, false, nil // another node does it
	}
	if more = next.turned(db.clock.guard, expired); !more {
		s.aside = !s.aside
		more = s.aside
	}
	*x = next
	db.clock.tellHeld(s.queued.held + s.parked.held)
	return expired, more, nil
}

// expireRows ends rows whose time is over, and tells how many it ended.
func (tx *ownTx) expireRows(list []expirable, sql string, from holdfast.State, done *int) error {
	var keys []orderingKey
	seqs := make([]int64, len(list))
	for i, e := range list {
		if seqs[i] = e.seq; e.key.key != "" {
			keys = append(keys, e.key)
		}
	}
	if err := tx.lockKeys(keys); err != nil {
		return err
	}
	var ended []int64
	if err := tx.query(sql, []any{seqs}, func(rows pgx.Rows) error {
		var seq int64
		var lane int32
		err := rows.Scan(&seq, &lane)
		tx.count(lane, moved(from, holdfast.Expired))
		ended = append(ended, seq)
		return err
	}); err != nil {
		return err
	}
	*done = len(ended)
	if err := tx.notices(ended, holdfast.Expired); err != nil {
		return err
	}
	return tx.placeKeys(keys)
}
