package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-mq/holdfast/notify"
)

// KPIs implements notify.Store. It reads what is not delivered, and what was
// delivered within the window.
func (db *DB) KPIs(ctx context.Context, stuckAfter, window time.Duration) (all notify.KPIs, sites map[string]notify.KPIs, err error) {
	tx, err := db.snapshot(ctx)
	if err != nil {
		return all, nil, fmt.Errorf("count notifications: %w", err)
	}
	defer func() { _ = tx.end() }()
	now := db.clock.now()
	sites = map[string]notify.KPIs{}
	err = tx.each(ctx, waitingBySite, func(rows *sql.Rows) error {
		var site string
		var k notify.KPIs
		var oldest sql.NullInt64
		err := rows.Scan(&site, &k.Depth, &k.Stuck, &k.Parked, &oldest)
		if oldest.Valid {
			k.Oldest = max(span(oldest.Int64, now), 0)
		}
		if k != (notify.KPIs{}) {
			sites[site] = k
		}
		return err
	}, now-micros(max(stuckAfter, 0)))
	if err == nil {
		err = tx.each(ctx, deliveredBySite, func(rows *sql.Rows) error {
			var site string
			var n int64
			err := rows.Scan(&site, &n)
			k := sites[site]
			k.Delivered = n
			sites[site] = k
			return err
		}, now-micros(max(window, 0)))
	}
	if err != nil {
		return notify.KPIs{}, nil, fmt.Errorf("count notifications: %w", db.noted(err))
	}
	for _, k := range sites {
		all.Add(k)
	}
	return all, sites, nil
}

// notified is where the purge of notifications stands between its calls.
type notified struct {
	gone    bool // what was delivered is done, the rest comes
	at, seq int64
}

// PurgeNotifications implements notify.Store, a page at a time from the oldest
// on. A notification goes with all its copies.
func (db *DB) PurgeNotifications(ctx context.Context, keep time.Duration) (purged int, more bool, err error) {
	if keep <= 0 || !db.owns.Load() || db.ready() != nil {
		return 0, false, nil
	}
	s := &db.sweeps
	s.mu.Lock()
	defer s.mu.Unlock()
	if sane, _ := db.clock.look(); !sane {
		return 0, false, nil
	}
	before := db.clock.guard.Before(db.clock.now(), micros(keep))
	past, read, err := db.pastNotifications(ctx, before)
	if err != nil {
		return 0, false, fmt.Errorf("purge notifications: %w", err)
	}
	for len(past) > 0 {
		n := min(len(past), sweepWrite)
		k := &purgeNotifications{list: past[:n], before: before}
		if err := db.writer.do(ctx, k); err != nil {
			return purged, false, fmt.Errorf("purge notifications: %w", err)
		}
		purged, past = purged+k.done, past[n:]
	}
	switch {
	case read == sweepPage:
		return purged, true, nil
	case !s.notified.gone:
		s.notified = notified{gone: true}
		return purged, true, nil
	}
	s.notified = notified{}
	return purged, false, nil
}

// pastNotifications returns the bundles of copies that have ended before then, each once, and how
// many copies it has read.
func (db *DB) pastNotifications(ctx context.Context, before int64) (list []int64, read int, err error) {
	at, which := &db.sweeps.notified, pastDelivered
	if at.gone {
		which = pastGone
	}
	rows, err := db.query(ctx, which, before, at.at, at.seq, sweepPage)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for ; rows.Next(); read++ {
		var bundle int64
		if err := rows.Scan(&at.at, &at.seq, &bundle); err != nil {
			return nil, 0, err
		}
		list = append(list, bundle)
	}
	slices.Sort(list)
	return slices.Compact(list), read, rows.Err()
}

// purgeNotifications is the work of deleting some of them.
type purgeNotifications struct {
	list   []int64 // their bundles
	before int64
	done   int
}

func (k *purgeNotifications) size() (int, int) { return 4 * len(k.list), 0 }

func (k *purgeNotifications) apply(tx *writeTx) error {
	k.done = 0
	for _, bundle := range k.list {
		needed, err := tx.conn.one(notificationNeeded, exists, bundle, k.before)
		if err != nil {
			return err
		}
		if needed {
			continue
		}
		if _, err := tx.exec(purgeTargets, bundle); err != nil {
			return err
		}
		gone, err := tx.exec(purgeNotification, bundle)
		if err != nil {
			return err
		}
		if _, err := tx.exec(purgeBundle, bundle); err != nil {
			return err
		}
		k.done += int(gone)
	}
	return nil
}
