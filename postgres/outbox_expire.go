package postgres

import (
	"context"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
)

// sweepPage is how many rows of a table one call reads; sweepWrite is how many it changes in one
// transaction.
const (
	sweepPage  = 5000
	sweepWrite = 500
)

// sweeps is the progress of this node's sweeps between their calls.
type sweeps struct {
	mu             sync.Mutex
	queued, parked expiries
	aside          bool  // pending rows are done, parked ones are next
	purged         int64 // this purge has read every message up to here
	from           int64 // purges begin here: all messages before it are deleted
	left           int64 // the first message that this purge has kept

	notified, notifiedSeq int64 // the last notification that this purge has read
}

// Expire implements holdfast.Sweepable. A claim expires the rows that it meets. Expire finds the
// others: rows in lanes from which nobody claims, and parked ones. One node does it at a time.
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
		if err := tx.endGivenUp(); err != nil { // in a store that was moved here
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

// expireRows ends rows that have expired, and sets done to their number.
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
