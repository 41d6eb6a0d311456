package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast/notify"
)

// KPIs implements notify.Store. It reads unfinished notifications, and those that were delivered
// within the window, in separate snapshots.
func (db *DB) KPIs(ctx context.Context, stuckAfter, window time.Duration) (all notify.KPIs, sites map[string]notify.KPIs, err error) {
	sites = map[string]notify.KPIs{}
	add := func(site string, k notify.KPIs) {
		sum := sites[site]
		sum.Add(k)
		sites[site] = sum
		all.Add(k)
	}
	for _, part := range []struct {
		sql  string
		args []any
		dest func(k *notify.KPIs, oldest *int64) []any
	}{
		{waitingBySite, []any{micros(max(stuckAfter, 0))}, func(k *notify.KPIs, oldest *int64) []any { return []any{&k.Depth, &k.Stuck, oldest} }},
		{parkedBySite, nil, func(k *notify.KPIs, _ *int64) []any { return []any{&k.Parked} }},
		{deliveredBySite, []any{micros(max(window, 0))}, func(k *notify.KPIs, _ *int64) []any { return []any{&k.Delivered} }},
	} {
		if err := db.read(ctx, part.sql, part.args, func(rows pgx.Rows) error {
			var site string
			var k notify.KPIs
			var oldest int64
			err := rows.Scan(append([]any{&site}, part.dest(&k, &oldest)...)...)
			k.Oldest = max(duration(oldest), 0)
			add(site, k)
			return err
		}); err != nil {
			return notify.KPIs{}, nil, fmt.Errorf("count notifications: %w", err)
		}
	}
	return all, sites, nil
}

// PurgeNotifications implements notify.Store. It works a page at a time, from the oldest. A
// notification goes together with all its copies. One node does it at a time.
func (db *DB) PurgeNotifications(ctx context.Context, keep time.Duration) (purged int, more bool, err error) {
	if keep <= 0 {
		return 0, false, nil
	}
	if err := db.usable(ctx); err != nil {
		return 0, false, fmt.Errorf("purge notifications: %w", err)
	}
	now, err := db.askClock(ctx)
	if err != nil {
		return 0, false, fmt.Errorf("purge notifications: %w", err)
	}
	before := db.clock.guard.Before(now, micros(keep))
	s := &db.sweeps
	s.mu.Lock()
	defer s.mu.Unlock()
	past, err := db.pastNotes(ctx, before)
	read := len(past)
	slices.Sort(past)
	past = slices.Compact(past) // each bundle once, however many copies have ended
	for err == nil && len(past) > 0 {
		n := min(len(past), sweepWrite)
		part, gone := past[:n], 0
		past = past[n:]
		err = db.own(ctx, func(tx *ownTx) error {
			gone = 0
			if mine, err := tx.upkeep(upkeepPurge); err != nil || !mine {
				return err
			}
			return tx.query(purgeNotifications, []any{part, before}, func(rows pgx.Rows) error { return rows.Scan(&gone) })
		})
		purged += gone
	}
	if err != nil {
		s.notified, s.notifiedSeq = 0, 0 // the next call reads them again
		return purged, false, fmt.Errorf("purge notifications: %w", err)
	}
	if more = read == sweepPage; !more {
		s.notified, s.notifiedSeq = 0, 0
	}
	return purged, more, nil
}

// pastNotes returns the bundles of notifications that ended before the given instant.
func (db *DB) pastNotes(ctx context.Context, before int64) (list []int64, err error) {
	s := &db.sweeps
	err = db.read(ctx, pastNotifications, []any{before, s.notified, s.notifiedSeq, sweepPage}, func(rows pgx.Rows) error {
		var bundle int64
		err := rows.Scan(&s.notified, &s.notifiedSeq, &bundle)
		list = append(list, bundle)
		return err
	})
	return list, err
}
