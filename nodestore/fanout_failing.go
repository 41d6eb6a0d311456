package nodestore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/internal/belief"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/rows"
)

const (
	failing     = `SELECT subscription, since FROM hf_failing WHERE subscription > $1 ORDER BY subscription LIMIT $2`
	addFailing  = `INSERT INTO hf_failing (subscription, since) VALUES ($1, hf_now() - $2) ON CONFLICT (subscription) DO NOTHING`
	dropFailing = `DELETE FROM hf_failing WHERE subscription = $1 AND since = $2`
)

// Failing implements fanout.FailingStore.
func (f *Fanout) Failing(ctx context.Context, long time.Duration, after string, limit int) (list []fanout.Failing, err error) {
	clock, err := f.db.Clock(ctx)
	if err == nil {
		err = f.db.Read(ctx, failing, []any{after, int64(limit)}, func(scan side.Scan) error {
			var one fanout.Failing
			var since int64
			err := scan(&one.Subscription, &since)
			one.Row, one.Since, one.Long = since, f.db.Time(rows.Instant(since)), clock.Judge(rows.Instant(since+rows.Micros(long)), long) == belief.Over
			list = append(list, one)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read which subscriptions fail: %w", err)
	}
	return list, nil
}

// NoteFailing implements fanout.FailingStore.
func (f *Fanout) NoteFailing(ctx context.Context, failed map[string]time.Duration, over []fanout.Failing) error {
	over = slices.SortedFunc(slices.Values(over), func(a, b fanout.Failing) int { return strings.Compare(a.Subscription, b.Subscription) })
	err := f.db.Change(ctx, side.Cost{Rows: len(failed)}, func(tx side.Tx) error {
		for _, id := range slices.Sorted(maps.Keys(failed)) { // both in one order, so that two nodes do not wait for each other
			if _, err := tx.Exec(addFailing, id, rows.Micros(failed[id])); err != nil {
				return err
			}
		}
		for _, one := range over {
			if _, err := tx.Exec(dropFailing, one.Subscription, one.Row); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("note which subscriptions fail: %w", err)
	}
	return nil
}
