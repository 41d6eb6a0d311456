package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/cursor"
)

// looked is how many rows one List call reads if no index fits the query, and how many waiting rows
// it sorts.
const looked = 20000

// List implements holdfast.Outbox. Each page reads a bounded number of rows, whatever the filter: a
// page may be short or empty and still have a next page.
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
	if l.tx, err = db.snapshot(ctx); err != nil {
		return p, err
	}
	defer func() { _ = l.tx.end() }()
	if q.Destination != "" {
		var lane int64
		switch err := l.tx.QueryRowContext(ctx, queries[laneOf], q.Destination).Scan(&lane); {
		case errors.Is(err, sql.ErrNoRows):
			return p, nil
		case err != nil:
			return p, err
		}
		l.lane, l.destination = lane, q.Destination
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

// listing is one List call. First it finds the rows of its page, then it reads them.
type listing struct {
	db          *DB
	tx          *snapshot
	states      []holdfast.State // empty: all
	held        bool             // only held messages
	destination string           // empty: all
	lane        any              // the lane's number; nil: all
	limit       int
	before      int64
	found       []int64
}

func (l *listing) wants(s holdfast.State) bool {
	return len(l.states) == 0 || slices.Contains(l.states, s)
}

// find fills found, newest first, and returns where the next page begins, or 0.
func (l *listing) find(ctx context.Context) (next int64, err error) {
	waiting := l.wants(holdfast.Pending)
	if l.wants(holdfast.Delivered) || waiting && l.db.lanes.pending() > looked {
		return l.walk(ctx)
	}
	// These queries have their own indexes, or are answered from memory.
	for _, q := range []struct {
		state holdfast.State
		query query
	}{{holdfast.Parked, listParked}, {holdfast.Expired, listExpired}, {holdfast.Discarded, listDiscarded}} {
		if l.wants(q.state) {
			if err := l.each(ctx, func(seq int64) { l.found = append(l.found, seq) }, q.query, l.before, l.lane, l.limit); err != nil {
				return 0, err
			}
		}
	}
	leased := l.db.lanes.leased(l.destination)
	if waiting {
		if err := l.each(ctx, func(seq int64) {
			if _, claimed := leased[seq]; !claimed && seq < l.before {
				l.found = append(l.found, seq)
			}
		}, listWaiting, l.lane); err != nil {
			return 0, err
		}
	}
	if l.wants(holdfast.Claimed) {
		for seq := range leased {
			if seq < l.before {
				l.found = append(l.found, seq)
			}
		}
	}
	slices.SortFunc(l.found, func(a, b int64) int { return cmp.Compare(b, a) })
	if len(l.found) >= l.limit {
		l.found = l.found[:l.limit]
		return l.found[l.limit-1], nil
	}
	return 0, nil
}

// walk goes backwards through a bounded part of the table.
func (l *listing) walk(ctx context.Context) (next int64, err error) {
	var top sql.NullInt64
	if err := l.tx.QueryRowContext(ctx, queries[listTop], l.before).Scan(&top); err != nil {
		return 0, err
	}
	floor := max(top.Int64-looked, 0)
	leased := l.db.lanes.leased(l.destination)
	rows, err := l.tx.QueryContext(ctx, queries[listWindow], l.before, floor, l.lane)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for len(l.found) < l.limit && rows.Next() {
		var seq int64
		var state holdfast.State
		if err := rows.Scan(&seq, &state); err != nil {
			return 0, err
		}
		if _, claimed := leased[seq]; claimed && state == holdfast.Pending {
			state = holdfast.Claimed
		}
		if l.wants(state) {
			l.found = append(l.found, seq)
		}
	}
	if len(l.found) == l.limit {
		return l.found[l.limit-1], rows.Err()
	}
	return floor, rows.Err()
}

func (l *listing) each(ctx context.Context, yield func(seq int64), q query, args ...any) (err error) {
	rows, err := l.tx.QueryContext(ctx, queries[q], args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var seq int64
		if err := rows.Scan(&seq); err != nil {
			return err
		}
		yield(seq)
	}
	return rows.Err()
}

func (l *listing) records(ctx context.Context) (list []holdfast.Record, err error) {
	if len(l.found) == 0 {
		return nil, nil
	}
	found, err := json.Marshal(l.found)
	if err != nil {
		return nil, err
	}
	rows, err := l.tx.QueryContext(ctx, queries[listRecords], string(found))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		r, err := l.db.scanRecord(rows, nil)
		if err != nil {
			return nil, err
		}
		if l.wants(r.State) && (!l.held || !r.HeldUntil.IsZero()) { // a lease may have ended meanwhile
			list = append(list, r)
		}
	}
	return list, rows.Err()
}

// leased returns the claimed messages of a lane, or of all lanes.
func (ls *lanes) leased(destination string) map[int64]struct{} {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	list := make(map[int64]struct{}, len(ls.leases))
	for seq, held := range ls.leases {
		if destination == "" || held.lane.name == destination {
			list[seq] = struct{}{}
		}
	}
	return list
}

// pending returns how many messages wait or are claimed.
func (ls *lanes) pending() (n int64) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.byName {
		n += l.counts.Pending
	}
	return n
}

// Overdue returns how long the oldest due message of each destination has been due. It reads one
// index entry per lane.
func (db *DB) Overdue(ctx context.Context) (list map[string]time.Duration, err error) {
	now := db.clock.now()
	rows, err := db.often(ctx, overdue, now)
	if err != nil {
		return nil, fmt.Errorf("look for overdue messages: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	list = map[string]time.Duration{}
	for rows.Next() {
		var destination string
		var due int64
		if err := rows.Scan(&destination, &due); err != nil {
			return nil, fmt.Errorf("look for overdue messages: %w", err)
		}
		list[destination] = duration(now - due)
	}
	return list, rows.Err()
}
