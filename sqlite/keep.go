package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// arrival is the work of storing incoming messages: those that wait to be
// fetched, or those that were forwarded and have their response.
type arrival struct {
	list      []incoming
	responses [][]byte // nil: they wait
	retention time.Duration
	results   []holdfast.Result
	bytes     int
}

func (k *arrival) size() (int, int) { return 2 * len(k.list), k.bytes }

func (k *arrival) apply(tx *writeTx) error {
	for i := range k.list {
		r, err := k.one(tx, i)
		if err != nil {
			return err
		}
		k.results[i] = r
	}
	return nil
}

func (k *arrival) one(tx *writeTx, i int) (holdfast.Result, error) {
	in := &k.list[i]
	source, err := tx.source(in.m.Source)
	if err != nil {
		return holdfast.Result{}, err
	}
	wait := k.responses == nil
	var response []byte
	if !wait {
		response = k.responses[i]
	}
	if v, stop, err := k.refuse(tx, in, source); stop || err != nil {
		return v, err
	}
	seq, err := tx.remember(in, source, wait, response, k.retention)
	if err != nil {
		return holdfast.Result{}, err
	}
	if seq == 0 {
		v, err := in.look(tx.conn, source, k.retention)
		if err == nil && !v.known {
			err = fmt.Errorf("remember %s: neither new nor known", in.m.ID)
		}
		tx.duplicates++
		tx.received++
		return holdfast.Result{Receipt: v.receipt, Err: v.err}, err
	}
	tx.received++
	receipt := holdfast.Receipt{ID: in.m.ID, State: holdfast.Delivered, Response: response}
	if !wait {
		return holdfast.Result{Receipt: receipt}, nil
	}
	tx.kept++
	_, err = tx.exec(insertInboxBody, seq, string(in.m.Kind), in.m.Payload, in.headers, nullText(in.m.CorrelationID))
	return holdfast.Result{Receipt: receipt}, err
}

// refuse turns away an id that this inbox may have forgotten. What has been
// forwarded already is recorded all the same.
func (k *arrival) refuse(tx *writeTx, in *incoming, source int64) (holdfast.Result, bool, error) {
	if k.responses != nil || !forgotten(&in.m.Attempt, k.retention) {
		return holdfast.Result{}, false, nil
	}
	v, err := in.look(tx.conn, source, k.retention)
	return holdfast.Result{Receipt: v.receipt, Err: v.err}, v.known || v.err != nil, err
}

// Keep implements holdfast.InboxLog.
func (db *DB) Keep(ctx context.Context, retention time.Duration, ms ...holdfast.Message) ([]holdfast.Result, error) {
	k := &arrival{retention: retention}
	return db.arrive(ctx, k, len(ms), func(i int) (*holdfast.Message, []byte) { return &ms[i], nil })
}

// Record implements holdfast.InboxLog.
func (db *DB) Record(ctx context.Context, retention time.Duration, done ...holdfast.Processed) ([]holdfast.Result, error) {
	k := &arrival{retention: retention, responses: make([][]byte, 0, len(done))}
	return db.arrive(ctx, k, len(done), func(i int) (*holdfast.Message, []byte) { return &done[i].Message, done[i].Response })
}

// arrive checks the messages and stores those that can be: one that cannot
// has its result and does not stop the others.
func (db *DB) arrive(ctx context.Context, k *arrival, n int, get func(i int) (*holdfast.Message, []byte)) ([]holdfast.Result, error) {
	if db.within(ctx) {
		return nil, fmt.Errorf("store incoming: %w", holdfast.ErrNested)
	}
	results := make([]holdfast.Result, n)
	at := make([]int, 0, n)
	for i := range n {
		m, response := get(i)
		in, err := newIncoming(m)
		if err != nil {
			results[i].Err = err
			continue
		}
		k.list, at = append(k.list, in), append(at, i)
		if k.responses != nil {
			k.responses = append(k.responses, response)
		}
		k.bytes += len(m.Payload) + len(response) + 128
	}
	if len(k.list) == 0 {
		return results, nil
	}
	k.results = make([]holdfast.Result, len(k.list))
	if err := db.writer.do(ctx, k); err != nil {
		return nil, fmt.Errorf("store %d incoming messages: %w", len(k.list), err)
	}
	for i, r := range k.results {
		results[at[i]] = r
	}
	return results, nil
}

// Known implements holdfast.InboxLog.
func (db *DB) Known(ctx context.Context, retention time.Duration, ms ...holdfast.Message) ([]bool, []holdfast.Result, error) {
	known, results := make([]bool, len(ms)), make([]holdfast.Result, len(ms))
	for i := range ms {
		in, err := newIncoming(&ms[i])
		if err != nil {
			known[i], results[i].Err = true, err
			continue
		}
		var hash, response []byte
		err = db.readers.QueryRowContext(ctx, `SELECT x.hash, x.response FROM hf_inbox AS x JOIN hf_source AS s ON s.source = x.source WHERE s.name = ?1 AND x.id = ?2`,
			ms[i].Source, in.id).Scan(&hash, &response)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			if forgotten(&ms[i].Attempt, retention) {
				known[i], results[i].Err = true, fmt.Errorf("receive %s from %s: %w", ms[i].ID, ms[i].Source, holdfast.ErrTooOld)
			}
		case err != nil:
			return nil, nil, fmt.Errorf("look up incoming %s: %w", ms[i].ID, err)
		case !bytes.Equal(hash, in.hash):
			known[i], results[i].Err = true, fmt.Errorf("receive %s from %s: %w", ms[i].ID, ms[i].Source, holdfast.ErrConflict)
		default:
			known[i] = true
			results[i].Receipt = holdfast.Receipt{ID: ms[i].ID, State: holdfast.Delivered, Duplicate: true, Response: response}
			db.received.Add(1)
			db.duplicates.Add(1)
		}
	}
	return known, results, nil
}

// Kept implements holdfast.InboxLog.
func (db *DB) Kept(ctx context.Context, q holdfast.KeptQuery) (p holdfast.KeptPage, err error) {
	limit := q.Limit
	if limit == 0 {
		limit = 50
	}
	limit = min(max(limit, 1), 500)
	text := `SELECT x.seq, x.id, s.name, x.endpoint, x.received, b.kind, b.payload, b.headers, b.corr FROM hf_inbox AS x
		JOIN hf_source AS s ON s.source = x.source JOIN hf_inbox_body AS b ON b.seq = x.seq WHERE x.kept = 1 AND x.seq > ?1`
	args := []any{q.After, limit}
	if q.Endpoint != "" {
		text += ` AND x.endpoint = ?3`
		args = append(args, q.Endpoint)
	}
	rows, err := db.readers.QueryContext(ctx, text+` ORDER BY x.seq LIMIT ?2`, args...)
	if err != nil {
		return p, fmt.Errorf("list kept messages: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var seq, received int64
		var id any
		var m holdfast.Message
		var headers, corr sql.NullString
		if err := rows.Scan(&seq, &id, &m.Source, &m.Endpoint, &received, &m.Kind, &m.Payload, &headers, &corr); err != nil {
			return p, fmt.Errorf("list kept messages: %w", err)
		}
		m.ID, m.CorrelationID = idFrom(id), corr.String
		if headers.Valid {
			if err := json.Unmarshal([]byte(headers.String), &m.Headers); err != nil {
				return p, fmt.Errorf("headers of kept message %s: %w", m.ID, err)
			}
		}
		p.Messages = append(p.Messages, holdfast.KeptMessage{Message: m, Received: db.clock.wall(received)})
		if len(p.Messages) == limit {
			p.Next = seq
		}
	}
	return p, rows.Err()
}

// Sources implements holdfast.InboxLog.
func (db *DB) Sources(ctx context.Context, id holdfast.ID) (list []string, err error) {
	id, err = holdfast.ParseID(string(id))
	if err != nil {
		return nil, fmt.Errorf("look for incoming message: %w: %w", holdfast.ErrInvalid, err)
	}
	rows, err := db.readers.QueryContext(ctx, `SELECT s.name, x.kept FROM hf_source AS s JOIN hf_inbox AS x ON x.source = s.source AND x.id = ?1 ORDER BY s.name`, idValue(id))
	if err != nil {
		return nil, fmt.Errorf("look for incoming message %s: %w", id, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var waiting, done []string
	for rows.Next() {
		var source string
		var kept bool
		if err := rows.Scan(&source, &kept); err != nil {
			return nil, fmt.Errorf("look for incoming message %s: %w", id, err)
		}
		if kept {
			waiting = append(waiting, source)
		} else {
			done = append(done, source)
		}
	}
	if len(waiting) > 0 {
		return waiting, rows.Err()
	}
	return done, rows.Err()
}

// finishKept is the work of ending a kept message.
type finishKept struct {
	source   string
	id       holdfast.ID
	response []byte
	fault    error
}

func (k *finishKept) size() (int, int) { return 2, len(k.response) }

func (k *finishKept) apply(tx *writeTx) error {
	k.fault = nil
	source, err := tx.source(k.source)
	if err != nil {
		return err
	}
	var seq int64
	var kept bool
	var response []byte
	found, err := tx.conn.one(findInbox, func(v []driver.Value) error {
		seq, kept, response = asInt(v[0]), asInt(v[2]) == 1, asBytes(v[3])
		return nil
	}, source, idValue(k.id))
	switch {
	case err != nil:
		return err
	case !found:
		k.fault = holdfast.ErrNotFound
		return nil
	case !kept && !bytes.Equal(response, k.response):
		k.fault = fmt.Errorf("it is done already, with another response: %w", holdfast.ErrState)
		return nil
	case !kept:
		return nil
	}
	now := tx.tick()
	n, err := tx.exec(finishInbox, seq, now, nullBytes(k.response), now)
	if err != nil || n == 0 {
		return err
	}
	tx.kept--
	_, err = tx.exec(deleteInboxBody, seq)
	return err
}

// Done implements holdfast.InboxLog.
func (db *DB) Done(ctx context.Context, source string, id holdfast.ID, response []byte) error {
	if db.within(ctx) {
		return fmt.Errorf("done: %w", holdfast.ErrNested)
	}
	id, err := holdfast.ParseID(string(id))
	if err != nil {
		return fmt.Errorf("done: %w: %w", holdfast.ErrInvalid, err)
	}
	k := &finishKept{source: source, id: id, response: response}
	if err := db.writer.do(ctx, k); err != nil {
		return fmt.Errorf("done %s: %w", id, err)
	}
	if k.fault != nil {
		return fmt.Errorf("done %s from %s: %w", id, source, k.fault)
	}
	return nil
}

// SweepInbox implements holdfast.InboxLog. Messages that wait to be fetched
// are never swept.
func (db *DB) SweepInbox(ctx context.Context, retention time.Duration) (int, bool, error) {
	s := &db.sweeps
	s.mu.Lock()
	defer s.mu.Unlock()
	now := db.clock.now()
	page, read, err := db.forgetPage(ctx, now, now-micros(retention))
	if err != nil {
		return 0, false, fmt.Errorf("sweep inbox: %w", err)
	}
	done := 0
	for len(page) > 0 {
		n := min(len(page), sweepWrite)
		k := &forget{seqs: page[:n], now: now}
		if err := db.writer.do(ctx, k); err != nil {
			return done, false, fmt.Errorf("sweep inbox: %w", err)
		}
		done += k.done
		page = page[n:]
	}
	if read < sweepPage {
		s.forgotten = 0
		return done, false, nil
	}
	return done, true, nil
}

func (db *DB) forgetPage(ctx context.Context, now, receivedBefore int64) (page []int64, read int, err error) {
	s := &db.sweeps
	rows, err := db.readers.QueryContext(ctx, `SELECT seq, kept, received, expires FROM hf_inbox WHERE seq > ?1 ORDER BY seq LIMIT ?2`, s.forgotten, sweepPage)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var seq, kept, received, expires int64
		if err := rows.Scan(&seq, &kept, &received, &expires); err != nil {
			return nil, 0, err
		}
		if received > receivedBefore {
			return page, 0, nil // all that follow are younger
		}
		read++
		s.forgotten = seq
		if kept == 0 && expires < now {
			page = append(page, seq)
		}
	}
	return page, read, rows.Err()
}

// forget is the work of deleting ids whose time is over.
type forget struct {
	seqs []int64
	now  int64
	done int
}

func (k *forget) size() (int, int) { return len(k.seqs), 0 }

func (k *forget) apply(tx *writeTx) error {
	k.done = 0
	for _, seq := range k.seqs {
		n, err := tx.exec(purgeInbox, seq, k.now)
		if err != nil {
			return err
		}
		k.done += int(n)
	}
	tx.inboxed -= int64(k.done)
	return nil
}
