package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/search"
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
	l := &listing{db: db, q: q, limit: min(max(cmp.Or(q.Limit, 50), 1), 500)}
	if q.Destination != "" {
		lanes, err := db.knownLanes(ctx, []string{q.Destination})
		if err != nil {
			return p, err
		}
		if l.lane = lanes[q.Destination]; l.lane == 0 {
			return p, nil
		}
	}
	if !q.Held {
		return search.List(ctx, q, l)
	}
	if p.Next, err = l.findHeld(ctx, q.After); err != nil {
		return p, err
	}
	p.Records, err = l.Records(ctx, l.found)
	p.Records = slices.DeleteFunc(p.Records, func(r holdfast.Record) bool { return !q.Selects(&r) || r.HeldUntil.IsZero() })
	return p, err
}

// listing is one List call, and what its search finds.
type listing struct {
	db     *DB
	q      *holdfast.Query
	lane   int32 // 0: all
	limit  int
	before int64
	found  []int64
}

func (l *listing) wants(s holdfast.State) bool {
	return len(l.q.States) == 0 || slices.Contains(l.q.States, s)
}

// Find implements search.Source.
func (l *listing) Find(ctx context.Context, before int64, limit int) (found []int64, next int64, read int, err error) {
	l.before, l.limit, l.found = before, limit, nil
	if l.wants(holdfast.Delivered) {
		next, read, err = l.walk(ctx, listWindow, true)
		return l.found, next, read, err
	}
	// These states have an index or a table.
	if l.wants(holdfast.Pending) || l.wants(holdfast.Claimed) {
		if next, read, err = l.walk(ctx, listQueue, false); err != nil {
			return nil, 0, 0, err
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
			if read++; seq >= next { // rows older than the end of the walk come with the next page
				l.found = append(l.found, seq)
			}
			return err
		}); err != nil {
			return nil, 0, 0, err
		}
	}
	slices.SortFunc(l.found, func(a, b int64) int { return cmp.Compare(b, a) })
	l.found = slices.Compact(l.found)
	if len(l.found) >= l.limit {
		l.found = l.found[:l.limit]
		next = l.found[l.limit-1]
	}
	return l.found, next, read, nil
}

// walk goes back through a table, for a bounded number of rows. It returns where to go on, or 0 at
// the end of the table, and how many rows it has read. Most pages are full after a few rows, so it
// reads few at first, then more.
func (l *listing) walk(ctx context.Context, sql string, all bool) (next int64, read int, err error) {
	next = l.before
	for size := l.limit; len(l.found) < l.limit && read < looked; size *= 8 {
		got := 0
		size = min(size, looked-read)
		if err = l.db.read(ctx, sql, []any{next, size}, func(rows pgx.Rows) error {
			var seq int64
			var lane int32
			var state int16
			var claimed bool
			if all {
				err = rows.Scan(&seq, &lane, &state)
			} else if err = rows.Scan(&seq, &lane, &claimed); claimed {
				state = int16(holdfast.Claimed)
			}
			if got++; len(l.found) == l.limit {
				return err
			}
			if next = seq; (l.lane == 0 || lane == l.lane) && l.wants(holdfast.State(state)) {
				l.found = append(l.found, seq)
			}
			return err
		}); err != nil {
			return 0, read, err
		}
		if read += got; got < size && len(l.found) < l.limit {
			return 0, read, nil
		}
	}
	return next, read, nil
}

// Records implements search.Source.
func (l *listing) Records(ctx context.Context, seqs []int64) (list []holdfast.Record, err error) {
	if len(seqs) == 0 {
		return nil, nil
	}
	err = l.db.read(ctx, listRecords, []any{seqs}, func(rows pgx.Rows) error {
		r, err := l.db.scanRecord(rows, nil)
		if err == nil && l.wants(r.State) { // its state may have changed since
			list = append(list, r)
		}
		return err
	})
	return list, err
}

// Texts implements search.Source.
func (l *listing) Texts(ctx context.Context, seqs []int64) (map[int64][]byte, error) {
	all := make(map[int64][]byte, len(seqs))
	return all, l.db.read(ctx, listTexts, []any{seqs}, func(rows pgx.Rows) error {
		var seq int64
		var text []byte
		err := rows.Scan(&seq, &text)
		all[seq] = text
		return err
	})
}

// From implements search.Source.
func (l *listing) From(ctx context.Context, seq int64) (int64, time.Time, error) {
	return l.db.from(ctx, messageFrom, seq)
}

// from returns the first row of a table that has the number seq or a higher one; 0: there is none.
func (db *DB) from(ctx context.Context, sql string, seq int64) (first int64, created time.Time, err error) {
	err = db.read(ctx, sql, []any{seq}, func(rows pgx.Rows) error {
		var at int64
		err := rows.Scan(&first, &at)
		created = db.clock.wall(at)
		return err
	})
	return first, created, err
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
