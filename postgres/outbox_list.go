package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/cursor"
)

// looked is how many rows one List call reads if no index fits the query.
const looked = 20000

// List implements holdfast.Outbox. Each page reads a bounded number of rows, whatever the filter.
// So a page may be short or empty, and still have a next one.
func (db *DB) List(ctx context.Context, q holdfast.Query) (holdfast.Page, error) {
	p, err := db.list(ctx, &q)
	if err != nil {
		return holdfast.Page{}, fmt.Errorf("list messages: %w", err)
	}
	return p, nil
}

func (db *DB) list(ctx context.Context, q *holdfast.Query) (p holdfast.Page, err error) {
	l := listing{db: db, states: q.States, held: q.Held, limit: min(max(cmp.Or(q.Limit, 50), 1), 500), before: never}
	if q.After != "" && !q.Held {
		if l.before, err = cursor.Parse(q.After); err != nil {
			return p, err
		}
	}
	if q.Destination != "" {
		lanes, err := db.knownLanes(ctx, []string{q.Destination})
		if err != nil {
			return p, err
		}
		if l.lane = lanes[q.Destination]; l.lane == 0 {
			return p, nil
		}
	}
	if q.Held {
		p.Next, err = l.findHeld(ctx, q.After)
	} else {
		var next int64
		next, err = l.find(ctx)
		p.Next = cursor.Format(next)
	}
	if err != nil {
		return p, err
	}
	p.Records, err = l.records(ctx)
	return p, err
}

// listing is one List call. It first finds the rows of its page, then reads them.
type listing struct {
	db     *DB
	states []holdfast.State // empty: all
	held   bool             // only held messages
	lane   int32            // 0: all
	limit  int
	before int64
	found  []int64
}

func (l *listing) wants(s holdfast.State) bool {
	return len(l.states) == 0 || slices.Contains(l.states, s)
}

// find fills found, newest first, and returns where the next page begins, or 0.
func (l *listing) find(ctx context.Context) (next int64, err error) {
	if l.wants(holdfast.Delivered) {
		return l.walk(ctx, listWindow, true)
	}
	// These states have an index or a table.
	if l.wants(holdfast.Pending) || l.wants(holdfast.Claimed) {
		if next, err = l.walk(ctx, listQueue, false); err != nil {
			return 0, err
		}
	}
	for _, state := range []holdfast.State{holdfast.Parked, holdfast.Expired, holdfast.Discarded} {
		if !l.wants(state) {
			continue
		}
		which, args := listAside, []any{l.before, int16(state), l.limit}
		if l.lane != 0 {
			which, args = listAsideOf, append(args, l.lane)
		}
		if err := l.db.read(ctx, which, args, func(rows pgx.Rows) error {
			var seq int64
			err := rows.Scan(&seq)
			if seq >= next { // rows older than the end of the walk come with the next page
				l.found = append(l.found, seq)
			}
			return err
		}); err != nil {
			return 0, err
		}
	}
	slices.SortFunc(l.found, func(a, b int64) int { return cmp.Compare(b, a) })
	l.found = slices.Compact(l.found)
	if len(l.found) >= l.limit {
		l.found = l.found[:l.limit]
		return l.found[l.limit-1], nil
	}
	return next, nil
}

// walk goes back through a table, for a bounded number of rows. It returns the last row that it
// read, or 0 at the end of the table.
func (l *listing) walk(ctx context.Context, sql string, all bool) (next int64, err error) {
	read, last, got, most := 0, int64(0), 0, looked
	if all && l.lane == 0 && len(l.states) == 0 {
		most = l.limit // each row is shown
	}
	err = l.db.read(ctx, sql, []any{l.before, most}, func(rows pgx.Rows) error {
		var seq int64
		var lane int32
		var state int16
		var claimed bool
		if all {
			err = rows.Scan(&seq, &lane, &state)
		} else if err = rows.Scan(&seq, &lane, &claimed); claimed {
			state = int16(holdfast.Claimed)
		}
		if read++; got == l.limit {
			return err
		}
		last = seq
		if (l.lane == 0 || lane == l.lane) && l.wants(holdfast.State(state)) {
			l.found = append(l.found, seq)
			got++
		}
		return err
	})
	if read == looked || got == l.limit {
		return last, err
	}
	return 0, err
}

func (l *listing) records(ctx context.Context) (list []holdfast.Record, err error) {
	if len(l.found) == 0 {
		return nil, nil
	}
	err = l.db.read(ctx, listRecords, []any{l.found}, func(rows pgx.Rows) error {
		r, err := l.db.scanRecord(rows, nil)
		if err == nil && l.wants(r.State) && (!l.held || !r.HeldUntil.IsZero()) { // its state may have changed since
			list = append(list, r)
		}
		return err
	})
	return list, err
}

// Overdue returns, for each destination with due messages, how long ago its oldest pending message
// became due. It reads one index entry per lane.
func (db *DB) Overdue(ctx context.Context) (list map[string]time.Duration, err error) {
	list = map[string]time.Duration{}
	err = db.read(ctx, overdue, nil, func(rows pgx.Rows) error {
		var destination string
		var us int64
		err := rows.Scan(&destination, &us)
		list[destination] = duration(us)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for overdue messages: %w", err)
	}
	return list, nil
}
