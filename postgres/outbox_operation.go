package postgres

import (
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/rows"
)

// tracked says which purged messages leave a record.
type tracked struct {
	lanes []int32
	of    map[int32]rows.Operation // by lane, with its destination and category
	since int64                    // those that ended then or later
}

func (db *DB) trackedLanes(ctx context.Context, r *holdfast.Retention, now int64) (*tracked, error) {
	t := &tracked{of: map[int32]rows.Operation{}, since: math.MinInt64}
	if len(r.Track) == 0 {
		return t, nil
	}
	if r.Tracking > 0 {
		t.since = db.clock.guard.Before(now, micros(r.Tracking))
	}
	known, err := db.knownLanes(ctx, slices.Collect(maps.Keys(r.Track)))
	for destination, lane := range known {
		t.lanes = append(t.lanes, lane)
		t.of[lane] = rows.Operation{Destination: destination, Category: string(r.Track[destination])}
	}
	return t, err
}

// read reads a row of purgeThese, and reports whether it leaves a record.
func (t *tracked) read(found pgx.Rows) (o *rows.Operation, lane int32, is bool, err error) {
	o = &rows.Operation{Tried: rows.None}
	var id []byte
	var headers *string
	var tried *int64
	if err := found.Scan(&o.Seq, &lane, &o.State, &is, &id, &o.Source, &o.Endpoint, &headers, &o.Retry, &o.Created, &o.Settled,
		&o.Failures, &o.Tries, &o.Cycle, &o.Reason, &o.Error, &o.Code, &tried); err != nil || !is {
		return o, lane, false, err
	}
	o.ID, o.Destination, o.Category = string(idFrom(id)), t.of[lane].Destination, t.of[lane].Category
	o.SetOrigin(text(headers))
	switch {
	case tried != nil:
		o.Tried = rows.Instant(*tried)
	case holdfast.State(o.State) == holdfast.Delivered:
		o.Tried = o.Settled
	}
	return o, lane, true, nil
}

// purgeOperations deletes some records of operations that ended longer ago than keep.
func (db *DB) purgeOperations(ctx context.Context, keep time.Duration) (more bool, err error) {
	if keep <= 0 {
		return false, nil
	}
	now, err := db.askClock(ctx)
	if err != nil {
		return false, err
	}
	before := db.clock.guard.Before(now, micros(keep))
	err = db.own(ctx, func(tx *ownTx) error {
		more = false
		if mine, err := tx.upkeep(upkeepPurge); err != nil || !mine {
			return err
		}
		return tx.query(purgeOperations, []any{before, sweepPage}, func(found pgx.Rows) error {
			var n int64
			err := found.Scan(&n)
			more = n == sweepPage
			return err
		})
	})
	return more, err
}
