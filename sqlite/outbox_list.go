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
	"github.com/holdfast-mq/holdfast/internal/search"
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
	l := &listing{db: db, q: q, limit: min(max(cmp.Or(q.Limit, 50), 1), 500)}
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
		l.lane = lane
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
	tx     *snapshot
	q      *holdfast.Query
	lane   any // the lane's number; nil: all
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
	waiting := l.wants(holdfast.Pending)
	if l.wants(holdfast.Delivered) || waiting && l.db.lanes.pending() > looked {
		next, read, err = l.walk(ctx)
		return l.found, next, read, err
	}
	// These queries have their own indexes, or are answered from memory.
	for _, q := range []struct {
		state holdfast.State
		query query
	}{{holdfast.Parked, listParked}, {holdfast.Expired, listExpired}, {holdfast.Discarded, listDiscarded}} {
		if l.wants(q.state) {
			if err := l.each(ctx, func(seq int64) { l.found = append(l.found, seq) }, q.query, l.before, l.lane, l.limit); err != nil {
				return nil, 0, 0, err
			}
		}
	}
	leased := l.db.lanes.leased(l.q.Destination)
	if waiting {
		if err := l.each(ctx, func(seq int64) {
			if _, claimed := leased[seq]; !claimed && seq < l.before {
				l.found = append(l.found, seq)
			}
		}, listWaiting, l.lane); err != nil {
			return nil, 0, 0, err
		}
	}
	if l.wants(holdfast.Claimed) {
		for seq := range leased {
			if seq < l.before {
				l.found = append(l.found, seq)
			}
		}
	}
	read = len(l.found)
	slices.SortFunc(l.found, func(a, b int64) int { return cmp.Compare(b, a) })
	if len(l.found) >= l.limit {
		l.found = l.found[:l.limit]
		next = l.found[l.limit-1]
	}
	return l.found, next, read, nil
}

// walk goes backwards through a bounded part of the table. It returns where to go on, and how many
// rows it has passed.
func (l *listing) walk(ctx context.Context) (next int64, read int, err error) {
	var top sql.NullInt64
	if err := l.tx.QueryRowContext(ctx, queries[listTop], l.before).Scan(&top); err != nil {
		return 0, 0, err
	}
	next = max(top.Int64-looked, 0)
	leased := l.db.lanes.leased(l.q.Destination)
	rows, err := l.tx.QueryContext(ctx, queries[listWindow], l.before, next, l.lane)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var seq int64
		var state holdfast.State
		if err := rows.Scan(&seq, &state); err != nil {
			return 0, 0, err
		}
		if _, claimed := leased[seq]; claimed && state == holdfast.Pending {
			state = holdfast.Claimed
		}
		if !l.wants(state) {
			continue
		}
		if l.found = append(l.found, seq); len(l.found) == l.limit {
			next = seq
			break
		}
	}
	return next, int(top.Int64 - next), rows.Err()
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

// Records implements search.Source.
func (l *listing) Records(ctx context.Context, seqs []int64) (list []holdfast.Record, err error) {
	err = l.some(ctx, listRecords, seqs, func(rows *sql.Rows) error {
		r, err := l.db.scanRecord(rows, nil)
		if err == nil && l.wants(r.State) { // a lease may have ended meanwhile
			list = append(list, r)
		}
		return err
	})
	return list, err
}

// Texts implements search.Source.
func (l *listing) Texts(ctx context.Context, seqs []int64) (map[int64][]byte, error) {
	all := make(map[int64][]byte, len(seqs))
	return all, l.some(ctx, listTexts, seqs, func(rows *sql.Rows) error {
		var seq int64
		var text []byte
		err := rows.Scan(&seq, &text)
		all[seq] = text
		return err
	})
}

// some reads rows by their numbers.
func (l *listing) some(ctx context.Context, q query, seqs []int64, row func(*sql.Rows) error) error {
	if len(seqs) == 0 {
		return nil
	}
	text, err := json.Marshal(seqs)
	if err != nil {
		return err
	}
	return l.tx.each(ctx, q, row, string(text))
}

// From implements search.Source.
func (l *listing) From(ctx context.Context, seq int64) (int64, time.Time, error) {
	return l.tx.from(ctx, l.db, messageFrom, seq)
}

// from returns the first row of a table that has the number seq or a higher one; 0: there is none.
func (s *snapshot) from(ctx context.Context, db *DB, q query, seq int64) (first int64, created time.Time, err error) {
	var at int64
	err = s.QueryRowContext(ctx, queries[q], seq).Scan(&first, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, time.Time{}, nil
	}
	return first, db.clock.wall(at), err
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
