package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// recordColumns are what a Record needs besides its history and payload.
const recordColumns = `m.seq, m.id, m.state, m.reason, m.failures, m.tries, m.cycle, m.created, m.due, m.expires, m.settled, m.okey, m.force,
	r.source, r.kind, r.endpoint, l.destination, length(b.payload), b.headers, b.corr, b.retry, b.ttl,
	(SELECT e.error FROM hf_event AS e WHERE e.message = m.seq AND e.error IS NOT NULL ORDER BY e.seq DESC LIMIT 1),
	(SELECT max(e.at) FROM hf_event AS e WHERE e.message = m.seq AND e.kind = 2)`

const recordTables = ` FROM hf_message AS m JOIN hf_route AS r ON r.route = m.route JOIN hf_lane AS l ON l.lane = m.lane JOIN hf_body AS b ON b.seq = m.seq`

// Get implements holdfast.Outbox.
func (db *DB) Get(ctx context.Context, id holdfast.ID) (holdfast.Record, error) {
	id, err := holdfast.ParseID(string(id))
	if err != nil {
		return holdfast.Record{}, fmt.Errorf("get message: %w: %w", holdfast.ErrInvalid, err)
	}
	// One snapshot for the row and its history.
	tx, err := db.readers.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return holdfast.Record{}, fmt.Errorf("get message %s: %w", id, err)
	}
	defer func() { _ = tx.Rollback() }()
	var payload []byte
	r, err := db.scanRecord(tx.QueryRowContext(ctx, `SELECT b.payload, `+recordColumns+recordTables+` WHERE m.id = ?1`, idValue(id)), &payload)
	if errors.Is(err, sql.ErrNoRows) {
		return r, fmt.Errorf("get message %s: %w", id, holdfast.ErrNotFound)
	}
	if err != nil {
		return r, fmt.Errorf("get message %s: %w", id, err)
	}
	r.Message.Payload = payload
	r.History, err = db.history(ctx, tx, &r)
	if err != nil {
		return r, fmt.Errorf("get history of message %s: %w", id, err)
	}
	return r, nil
}

// historyRows bounds what one Get shows of a message that was tried for weeks.
const historyRows = 500

func (db *DB) history(ctx context.Context, tx *sql.Tx, r *holdfast.Record) (history []holdfast.Event, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT * FROM (SELECT `+eventColumns+` FROM hf_event AS e WHERE e.message = ?1 ORDER BY e.seq DESC LIMIT ?2) ORDER BY 1`, r.Seq, historyRows)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		v, err := values(rows, 14)
		if err != nil {
			return nil, err
		}
		e := db.readEvent(v)
		e.ID, e.Destination = r.Message.ID, r.Message.Destination
		history = append(history, e)
	}
	// A first enqueue and a delivery stand in the row itself unless something
	// follows the journal.
	first := holdfast.Event{ID: r.Message.ID, Destination: r.Message.Destination, Kind: holdfast.Enqueued, At: r.Created, Cycle: 1}
	if len(history) == 0 || history[0].Kind != holdfast.Enqueued && len(history) < historyRows {
		history = append([]holdfast.Event{first}, history...)
	}
	if last := history[len(history)-1]; r.State == holdfast.Delivered && last.State != holdfast.Delivered {
		history = append(history, holdfast.Event{
			ID: r.Message.ID, Destination: r.Message.Destination, Kind: holdfast.Attempted, State: holdfast.Delivered,
			Outcome: holdfast.Succeeded, At: r.Settled, Cycle: r.Cycle, Attempt: r.Tries,
		})
	}
	return history, rows.Err()
}

// List implements holdfast.Outbox. Each page reads a bounded number of rows,
// whatever it filters: a page may be short, or empty, and have a next one.
func (db *DB) List(ctx context.Context, q holdfast.Query) (holdfast.Page, error) {
	const looked = 20000
	limit := q.Limit
	if limit == 0 {
		limit = 50
	}
	limit = min(max(limit, 1), 500)
	before := int64(never)
	if q.After != "" {
		n, err := strconv.ParseInt(q.After, 36, 64)
		if err != nil || n < 0 {
			return holdfast.Page{}, fmt.Errorf("list messages: %w: %w", holdfast.ErrInvalid,
				&holdfast.FieldError{Field: "after", Value: q.After, Problem: "is not a position that a page gave"})
		}
		before = n
	}
	where, args := db.narrow(q)
	wanted := func(s holdfast.State) bool { return len(q.States) == 0 || slices.Contains(q.States, s) }
	// Where the states asked for have an index of their own, use it; else
	// walk the table backwards for a while.
	text := `SELECT m.seq FROM hf_message AS m WHERE m.seq < ?1 AND m.seq >= ?2` + where + ` ORDER BY m.seq DESC LIMIT ?3`
	floor := int64(0)
	if !rareStates(q.States) && !db.fewWait(q.States) {
		var err error
		if floor, err = db.floor(ctx, before, looked); err != nil {
			return holdfast.Page{}, fmt.Errorf("list messages: %w", err)
		}
	}
	rows, err := db.readers.QueryContext(ctx, `SELECT `+recordColumns+recordTables+` WHERE m.seq IN (`+text+`) ORDER BY m.seq DESC`,
		append([]any{before, floor, limit}, args...)...)
	if err != nil {
		return holdfast.Page{}, fmt.Errorf("list messages: %w", err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	var p holdfast.Page
	read, last := 0, int64(0)
	for rows.Next() {
		r, err := db.scanRecord(rows, nil)
		if err != nil {
			return p, fmt.Errorf("list messages: %w", err)
		}
		read, last = read+1, r.Seq
		if wanted(r.State) { // a lease in memory tells pending and claimed apart
			p.Records = append(p.Records, r)
		}
	}
	switch {
	case read == limit:
		p.Next = strconv.FormatInt(last, 36)
	case floor > 0:
		p.Next = strconv.FormatInt(floor, 36)
	}
	return p, rows.Err()
}

// floor is the lowest seq that a page without an index looks at.
func (db *DB) floor(ctx context.Context, before, looked int64) (int64, error) {
	var top sql.NullInt64
	if err := db.readers.QueryRowContext(ctx, `SELECT max(seq) FROM hf_message WHERE seq < ?1`, before).Scan(&top); err != nil {
		return 0, err
	}
	return max(top.Int64-looked, 0), nil
}

func rareStates(states []holdfast.State) bool {
	for _, s := range states {
		if s == holdfast.Delivered || !s.Final() {
			return false
		}
	}
	return len(states) > 0
}

// fewWait says whether only unfinished messages are asked for, and so few
// that reading all of them beats walking back to find them.
func (db *DB) fewWait(states []holdfast.State) bool {
	for _, s := range states {
		if s.Final() {
			return false
		}
	}
	return len(states) > 0 && db.Counts().Pending <= 20000
}

// narrow returns the conditions of a query. Claimed is mostly a lease in
// memory, so both unfinished states are read and told apart afterwards.
func (db *DB) narrow(q holdfast.Query) (where string, args []any) {
	switch {
	case len(q.States) == 0:
	case db.fewWait(q.States):
		where += ` AND m.seq IN (SELECT seq FROM hf_message WHERE state = 0
			UNION ALL SELECT seq FROM hf_message WHERE state = 1 AND state IN (1, 3, 4, 5))`
	default:
		var in []string
		for _, s := range q.States {
			if s == holdfast.Claimed {
				in = append(in, "0")
			}
			in = append(in, strconv.Itoa(int(s)))
		}
		where += ` AND m.state IN (` + strings.Join(in, ",") + `)`
		if rareStates(q.States) {
			where += ` AND m.state IN (1, 3, 4, 5)` // the index's own words
		}
	}
	if q.Destination != "" {
		where += ` AND m.lane = (SELECT lane FROM hf_lane WHERE destination = ?4)`
		args = append(args, q.Destination)
	}
	return where, args
}

type scanner interface{ Scan(dest ...any) error }

func (db *DB) scanRecord(s scanner, payload *[]byte) (holdfast.Record, error) {
	var r holdfast.Record
	m := &r.Message
	var id any
	var state, created, due, force int64
	var expires, settled, ttl, last sql.NullInt64
	var reason, okey, headers, corr, retry, lastError sql.NullString
	dest := []any{
		&r.Seq, &id, &state, &reason, &r.Failures, &r.Tries, &r.Cycle, &created, &due, &expires, &settled, &okey, &force,
		&m.Source, &m.Kind, &m.Endpoint, &m.Destination, &r.Size, &headers, &corr, &retry, &ttl, &lastError, &last,
	}
	if payload != nil {
		dest = append([]any{payload}, dest...)
	}
	if err := s.Scan(dest...); err != nil {
		return r, err
	}
	m.ID, m.OrderingKey, m.CorrelationID = idFrom(id), okey.String, corr.String
	m.TTL, m.Attempt = duration(ttl.Int64), holdfast.Attempt{Number: r.Tries, Cycle: r.Cycle, Forced: force == 1}
	r.Reason, r.LastError = holdfast.Reason(reason.String), lastError.String
	r.State = db.lanes.shown(r.Seq, holdfast.State(state))
	r.Created, r.Expires, r.Settled, r.LastAttempt = db.clock.wall(created), db.wall(expires), db.wall(settled), db.wall(last)
	if r.LastAttempt.IsZero() && r.State == holdfast.Delivered {
		r.LastAttempt = r.Settled
	}
	if r.State == holdfast.Pending {
		r.Due = db.clock.wall(due)
	}
	if headers.Valid {
		if err := json.Unmarshal([]byte(headers.String), &m.Headers); err != nil {
			return r, fmt.Errorf("headers of %s: %w", m.ID, err)
		}
	}
	if retry.Valid {
		m.Retry = &holdfast.RetryPolicy{}
		if err := json.Unmarshal([]byte(retry.String), m.Retry); err != nil {
			return r, fmt.Errorf("retry policy of %s: %w", m.ID, err)
		}
	}
	return r, nil
}

func (db *DB) wall(at sql.NullInt64) time.Time { return db.clock.wall(at.Int64) }

// values scans a row into driver values, for readers shared with the writer.
func values(rows *sql.Rows, n int) ([]any, error) {
	v, dest := make([]any, n), make([]any, n)
	for i := range v {
		dest[i] = &v[i]
	}
	return v, rows.Scan(dest...)
}

// Overdue returns, for each destination with due messages, for how long the
// oldest of them has been due. It reads one index entry per lane.
func (db *DB) Overdue(ctx context.Context) (list map[string]time.Duration, err error) {
	now := db.clock.now()
	rows, err := db.readers.QueryContext(ctx, `SELECT l.destination, (SELECT due FROM hf_message WHERE lane = l.lane AND state = 0 ORDER BY due LIMIT 1) AS first
		FROM hf_lane AS l WHERE first <= ?1`, now)
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
