package nodestore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/activity"
	"github.com/holdfast-mq/holdfast/internal/belief"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/rows"
)

// A filter other than the message has no index: it looks at each row of a range. A plus keeps the
// index of a time from being taken for it.
const (
	endActs   = `SELECT coalesce((SELECT min(seq) FROM hf_activity), 0), coalesce((SELECT max(seq) FROM hf_activity), 0)`
	firstAct  = `SELECT seq FROM hf_activity WHERE at >= $1 ORDER BY at, seq LIMIT 1`
	lastAct   = `SELECT seq FROM hf_activity WHERE at <= $1 ORDER BY at DESC, seq DESC LIMIT 1`
	oldestAct = `SELECT seq, noted FROM hf_activity WHERE seq < (SELECT max(seq) FROM hf_activity) ORDER BY seq LIMIT 1000`
	dropActs  = `DELETE FROM hf_activity WHERE seq <= $1`
	actsDown  = `SELECT seq, at, kind, message, destination, cycle, attempt, coalesce(actor, ''), coalesce(reason, ''), coalesce(code, ''), coalesce(error, '')
		FROM hf_activity WHERE seq > $1 AND seq < $2 AND ($3 = 0 OR kind = $3) AND ($4 = '' OR destination = $4) AND ($5 = '' OR actor = $5)
			AND +at >= $6 AND +at <= $7 AND ($9 OR message = $8) ORDER BY seq DESC LIMIT $10`
	actsUp = `SELECT seq, at, kind, message, destination, cycle, attempt, coalesce(actor, ''), coalesce(reason, ''), coalesce(code, ''), coalesce(error, '')
		FROM hf_activity WHERE seq > $1 AND seq < $2 AND ($3 = 0 OR kind = $3) AND ($4 = '' OR destination = $4) AND ($5 = '' OR actor = $5)
			AND +at >= $6 AND +at <= $7 AND ($9 OR message = $8) ORDER BY seq LIMIT $10`
	actsOf = `SELECT seq, at, kind, message, destination, cycle, attempt, coalesce(actor, ''), coalesce(reason, ''), coalesce(code, ''), coalesce(error, '')
		FROM hf_activity WHERE seq > $1 AND seq < $2 AND ($3 = 0 OR kind = $3) AND ($4 = '' OR destination = $4) AND ($5 = '' OR actor = $5)
			AND +at >= $6 AND +at <= $7 AND NOT $9 AND message = $8 ORDER BY seq DESC LIMIT $10`
)

// outOfOrder is how much later an act may be written than one that happened after it.
const outOfOrder = 10 * time.Minute

// Activity keeps what happened to messages.
type Activity struct{ db side.Store }

var _ activity.Store = (*Activity)(nil)

// Ends implements activity.Store.
func (a *Activity) Ends(ctx context.Context) (oldest, newest int64, err error) {
	err = a.db.Read(ctx, endActs, nil, func(scan side.Scan) error { return scan(&oldest, &newest) })
	if err != nil {
		err = fmt.Errorf("find the ends of the activity log: %w", err)
	}
	return oldest, newest, err
}

// Around implements activity.Store.
func (a *Activity) Around(ctx context.Context, since, until time.Time) (r activity.Range, err error) {
	r.Before = forEver
	if !since.IsZero() {
		first := int64(forEver)
		err = a.db.Read(ctx, firstAct, []any{since.Add(-outOfOrder).UnixMicro()}, func(scan side.Scan) error { return scan(&first) })
		r.After = first - 1
	}
	if !until.IsZero() && err == nil {
		last := int64(0)
		err = a.db.Read(ctx, lastAct, []any{until.Add(outOfOrder).UnixMicro()}, func(scan side.Scan) error { return scan(&last) })
		r.Before = last + 1
	}
	if err != nil {
		return r, fmt.Errorf("find a time in the activity log: %w", err)
	}
	return r, nil
}

// forEver is a number that no act reaches, and a time that does not come.
const forEver = 1<<63 - 1

// Acts implements activity.Store.
func (a *Activity) Acts(ctx context.Context, q activity.Query, r activity.Range) (list []activity.Act, err error) {
	key, since, until := []byte{}, int64(-forEver), int64(forEver)
	if q.Message != "" {
		key = activity.Key(q.Message)
	}
	if !q.Since.IsZero() {
		since = q.Since.UnixMicro()
	}
	if !q.Until.IsZero() {
		until = q.Until.UnixMicro()
	}
	sql := actsUp
	switch {
	case r.Newest && q.Message != "":
		sql = actsOf
	case r.Newest:
		sql = actsDown
	}
	read := int64(r.Limit)
	if len(q.Among) > 0 {
		read = forEver // a range is bounded, and so are the acts of one message
	}
	err = a.db.Read(ctx, sql, []any{r.After, r.Before, int64(q.Kind), q.Destination, q.Actor, since, until, key, q.Message == "", read}, func(scan side.Scan) error {
		if len(list) == r.Limit {
			return nil
		}
		var of activity.Act
		var at, kind, cycle, attempt int64
		var reason string
		if err := scan(&of.Seq, &at, &kind, &key, &of.Destination, &cycle, &attempt, &of.Actor, &reason, &of.Code, &of.Error); err != nil {
			return err
		}
		if len(q.Among) > 0 && !slices.Contains(q.Among, of.Destination) {
			return nil
		}
		of.At, of.Kind, of.Message = time.UnixMicro(at).UTC(), activity.Kind(kind), activity.ID(key)
		of.Cycle, of.Attempt, of.Reason = int(cycle), int(attempt), holdfast.Reason(reason)
		list = append(list, of)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the activity log: %w", err)
	}
	return list, nil
}

// Purge implements activity.Store.
func (a *Activity) Purge(ctx context.Context, keep time.Duration) (more bool, err error) {
	clock, err := a.db.Clock(ctx)
	if err != nil {
		return false, fmt.Errorf("purge the activity log: %w", err)
	}
	var last, read int64 // the number of the last one that is over
	over := true
	err = a.db.Read(ctx, oldestAct, nil, func(scan side.Scan) error {
		var seq, noted int64
		if err := scan(&seq, &noted); err != nil {
			return err
		}
		read++
		if over = over && clock.Judge(rows.Instant(noted+rows.Micros(keep)), keep) == belief.Over; over {
			last = seq
		}
		return nil
	})
	if err == nil && last > 0 {
		err = a.db.Change(ctx, side.Cost{Rows: int(read)}, func(tx side.Tx) error {
			_, err := tx.Exec(dropActs, last)
			return err
		})
	}
	if err != nil {
		return false, fmt.Errorf("purge the activity log: %w", err)
	}
	return last > 0 && over && read == purgeAtOnce, nil
}

// purgeAtOnce is how many rows oldestAct returns.
const purgeAtOnce = 1000
