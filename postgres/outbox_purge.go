package postgres

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/rows"
)

// Purge implements holdfast.Sweepable. It deletes final rows that are past their retention, with
// contents and histories, a page at a time from the oldest. It keeps what a follower of the journal
// has not read yet.
func (db *DB) Purge(ctx context.Context, r holdfast.Retention) (int, bool, error) {
	if err := db.usable(ctx); err != nil {
		return 0, false, fmt.Errorf("purge: %w", err)
	}
	purged, more, err := db.purgeMessages(ctx, r)
	if err != nil {
		return purged, false, fmt.Errorf("purge: %w", err)
	}
	moreNotes, err := db.purgeNotes(ctx)
	if err != nil {
		return purged, false, fmt.Errorf("purge the journal: %w", err)
	}
	moreRecords, err := db.purgeOperations(ctx, r.Tracking)
	if err != nil {
		return purged, false, fmt.Errorf("purge records of operations: %w", err)
	}
	return purged, more || moreNotes || moreRecords, nil
}

// purgeNotes deletes some journal entries that are not about a message of the outbox and that every
// follower has read.
func (db *DB) purgeNotes(ctx context.Context) (more bool, err error) {
	err = db.own(ctx, func(tx *ownTx) error {
		more = false
		if mine, err := tx.upkeep(upkeepPurge); err != nil || !mine {
			return err
		}
		return tx.query(purgeNotes, []any{sweepPage}, func(rows pgx.Rows) error {
			var n int64
			err := rows.Scan(&n)
			more = n == sweepPage
			return err
		})
	})
	return more, err
}

func (db *DB) purgeMessages(ctx context.Context, r holdfast.Retention) (int, bool, error) {
	now, err := db.askClock(ctx)
	if err != nil {
		return 0, false, err
	}
	before := db.clock.guard.Before
	keep := map[holdfast.State]int64{}
	youngest := int64(math.MinInt64)
	for state, d := range map[holdfast.State]time.Duration{
		holdfast.Delivered: r.Delivered, holdfast.Expired: r.Expired, holdfast.Discarded: r.Discarded, holdfast.Parked: r.Parked,
	} {
		if d > 0 {
			keep[state] = before(now, micros(d))
			youngest = max(youngest, keep[state])
		}
	}
	if len(keep) == 0 {
		return 0, false, nil
	}
	held, err := db.heldLanes(ctx, r.Held, now)
	if err != nil {
		return 0, false, err
	}
	records, err := db.trackedLanes(ctx, &r, now)
	if err != nil {
		return 0, false, err
	}
	s := &db.sweeps
	s.mu.Lock()
	defer s.mu.Unlock()
	page, more, err := db.purgePage(ctx, youngest, keep, held)
	if err != nil {
		return 0, false, err
	}
	done := 0
	for len(page) > 0 {
		part, gone := page[:min(len(page), sweepWrite)], map[int64]bool{}
		page = page[len(part):]
		if err := db.own(ctx, func(tx *ownTx) error {
			clear(gone)
			if mine, err := tx.upkeep(upkeepPurge); err != nil || !mine {
				return err
			}
			return tx.purge(part, records, gone)
		}); err != nil {
			for _, r := range append(part, page...) { // the next purge reads them again
				s.leaves(r.seq)
			}
			return done, false, err
		}
		done += len(gone)
		for _, r := range part {
			if !gone[r.seq] {
				s.leaves(r.seq)
			}
		}
	}
	if !more {
		if s.left > 0 {
			s.from = s.left - 1
		}
		s.purged, s.left = s.from, 0
	}
	return done, more, nil
}

// heldLanes returns, by the number of a lane, the instant since which its delivered messages must
// be kept.
func (db *DB) heldLanes(ctx context.Context, held map[string]time.Duration, now int64) (map[int32]int64, error) {
	if len(held) == 0 {
		return nil, nil //nolint:nilnil // no lane is held
	}
	lanes, err := db.knownLanes(ctx, slices.Collect(maps.Keys(held)))
	list := make(map[int32]int64, len(lanes))
	for destination, lane := range lanes {
		list[lane] = db.clock.guard.Before(now, micros(held[destination]))
	}
	return list, err
}

type purgeRow struct {
	seq   int64
	state int16
	key   orderingKey
}

// purgePage finds rows to delete. Rows are accepted nearly in the order of their numbers, so a row
// within the shortest retention ends the purge.
func (db *DB) purgePage(ctx context.Context, youngest int64, keep map[holdfast.State]int64, held map[int32]int64) (page []purgeRow, more bool, err error) {
	s := &db.sweeps
	read, young, from := 0, false, s.purged
	defer func() {
		if err != nil {
			s.purged = from // the page comes again
		}
	}()
	err = db.read(ctx, purgePage, []any{s.purged, youngest, sweepPage}, func(rows pgx.Rows) error {
		var r purgeRow
		var settled int64
		var recent bool
		if err := rows.Scan(&r.seq, &recent, &r.state, &settled, &r.key.lane, &r.key.key); err != nil || recent || young {
			young = young || recent
			return err
		}
		read++
		s.purged = r.seq
		before, ends := keep[holdfast.State(r.state)]
		if from, ok := held[r.key.lane]; ok && holdfast.State(r.state) == holdfast.Delivered {
			before = min(before, from)
		}
		if ends && settled < before {
			page = append(page, r)
		} else {
			s.leaves(r.seq)
		}
		return nil
	})
	return page, read == sweepPage, err
}

// leaves records a message that stays. Deleted rows stay in the index for a while, and the next
// purge starts behind them.
func (s *sweeps) leaves(seq int64) {
	if s.left == 0 || seq < s.left {
		s.left = seq
	}
}

func (tx *ownTx) purge(list []purgeRow, records *tracked, gone map[int64]bool) error {
	seqs, states := make([]int64, len(list)), make([]int16, len(list))
	var keys []orderingKey
	for i, r := range list {
		// A strict key may wait for a parked message.
		if seqs[i], states[i] = r.seq, r.state; r.key.key != "" && holdfast.State(r.state) == holdfast.Parked {
			keys = append(keys, r.key)
		}
	}
	if err := tx.lockKeys(keys); err != nil {
		return err
	}
	var past []rows.Row
	if err := tx.query(purgeThese, []any{seqs, states, records.lanes, records.since}, func(found pgx.Rows) error {
		o, lane, is, err := records.read(found)
		tx.count(lane, moved(holdfast.State(o.State), holdfast.Delivered))
		if gone[o.Seq] = true; is {
			past = append(past, o)
		}
		return err
	}); err != nil {
		return err
	}
	if len(past) > 0 {
		if err := tx.put(past...); err != nil {
			return err
		}
	}
	return tx.placeKeys(keys)
}
