package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"math"
	"time"

	"github.com/holdfast-mq/holdfast/rows"
)

// retriesAtOnce is how many messages MoveRetries reads in one transaction.
const retriesAtOnce = 500

// MoveRetries implements fanout.Mover.
func (db *DB) MoveRetries(ctx context.Context, destination string, plan func(tries int, wait time.Duration) time.Duration) (moved int, err error) {
	from := retryRow{due: db.clock.now(), seq: math.MaxInt64}
	for more := true; more && err == nil; {
		var last retryRow
		read, changed := 0, 0
		err = db.writer.do(ctx, workFunc(func(tx *writeTx) (err error) {
			last, read, changed, err = tx.moveRetries(destination, from, plan)
			return err
		}))
		moved, from, more = moved+changed, last, read == retriesAtOnce
	}
	if err != nil {
		return moved, fmt.Errorf("move the retries of %s: %w", destination, err)
	}
	return moved, nil
}

// retryRow is a message that waits for a retry.
type retryRow struct{ seq, due, tries, tried int64 }

// moveRetries moves the retries of one page, and returns its last row.
func (tx *writeTx) moveRetries(destination string, from retryRow, plan func(tries int, wait time.Duration) time.Duration) (last retryRow, read, moved int, err error) {
	var list []retryRow
	if err = tx.conn.each(retriesPage, func(v []driver.Value) error {
		list = append(list, retryRow{asInt(v[0]), asInt(v[1]), asInt(v[2]), asInt(v[3])})
		return nil
	}, destination, from.due, from.seq, int64(retriesAtOnce)); err != nil || len(list) == 0 {
		return from, 0, 0, err
	}
	soonest := int64(never)
	for _, r := range list {
		was := rows.Duration(r.due - r.tried)
		wait := plan(int(r.tries), was)
		if r.tried == 0 || wait == was {
			continue
		}
		due := after(r.tried, wait)
		n, err := tx.exec(moveRetry, r.seq, r.due, due)
		if err != nil {
			return from, 0, 0, err
		}
		moved, soonest = moved+int(n), min(soonest, due)
	}
	if moved > 0 {
		l, err := tx.lane(destination)
		if err != nil {
			return from, 0, 0, err
		}
		tx.fresh = append(tx.fresh, freshRow{lane: l, due: soonest, tried: true})
	}
	return list[len(list)-1], len(list), moved, nil
}
