package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/belief"
	"github.com/holdfast-mq/holdfast/internal/cursor"
)

// heldPlace is the position of a list of held messages. The list walks as the sweep does: over
// waiting messages in the order of their lanes, then over parked ones. Neither index has rows that
// have ended.
type heldPlace struct{ aside, lane, due, seq int64 }

// findHeld fills found with held messages, and returns the position after the page. It reads no
// more rows than another list does.
func (l *listing) findHeld(ctx context.Context, after string) (next string, err error) {
	at, now := heldPlace{}, l.db.clock.now()
	if after != "" {
		place, err := cursor.ParsePlace(after, 4)
		if err != nil {
			return "", err
		}
		at = heldPlace{place[0], place[1], place[2], place[3]}
	}
	if doubt, _ := l.db.clock.guard.Doubt(now); doubt == 0 {
		return "", nil
	}
	if of, ok := l.lane.(int64); ok && at == (heldPlace{}) {
		at.lane = of
	}
	for states := [...]holdfast.State{holdfast.Pending, holdfast.Parked}; at.aside < int64(len(states)); at = (heldPlace{aside: at.aside + 1}) {
		if !l.wants(states[at.aside]) {
			continue
		}
		if whole, err := l.walkHeld(ctx, &at, now); err != nil || !whole {
			return cursor.FormatPlace(at.aside, at.lane, at.due, at.seq), err
		}
	}
	return "", nil
}

// walkHeld goes on through one of the two indexes, and reports whether it reached the end.
func (l *listing) walkHeld(ctx context.Context, at *heldPlace, now int64) (whole bool, err error) {
	q, args := expirable, []any{at.lane, at.due, at.seq, looked, now}
	if at.aside == 1 {
		q, args = expirableAside, []any{at.seq, looked, now}
	}
	rows, err := l.tx.QueryContext(ctx, queries[q], args...)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	read := 0
	for rows.Next() {
		if len(l.found) == l.limit {
			return false, nil
		}
		var lane, due, seq int64
		var expires, lasts sql.NullInt64
		if err := rows.Scan(&lane, &due, &seq, &expires, &lasts); err != nil {
			return false, err
		}
		if l.lane != nil && lane != l.lane && at.aside == 0 {
			return true, nil // the index goes on with the next lane
		}
		at.lane, at.due, at.seq = lane, due, seq
		if read++; (l.lane == nil || lane == l.lane) && expires.Valid && l.db.clock.judge(now, expires.Int64, lasts.Int64) == belief.Held {
			l.found = append(l.found, seq)
		}
	}
	return read < looked, rows.Err()
}
