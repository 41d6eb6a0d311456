package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// readable fails if the store is closed. It also fails if a read would wait for ever: in a
// transaction on the only connection of the caller's pool.
func (db *DB) readable(ctx context.Context) error {
	switch {
	case db.gone.Load():
		return holdfast.ErrClosed
	case db.attached != nil && db.within(ctx) && db.readers.Stats().MaxOpenConnections == 1:
		return fmt.Errorf("the pool has one connection, which the transaction uses: %w", holdfast.ErrNested)
	}
	return nil
}

// query runs one of the readers' queries.
func (db *DB) query(ctx context.Context, q query, args ...any) (*sql.Rows, error) {
	if err := db.readable(ctx); err != nil {
		return nil, err
	}
	rows, err := db.readers.QueryContext(ctx, queries[q], args...)
	return rows, db.noted(err)
}

// Get implements holdfast.Outbox.
func (db *DB) Get(ctx context.Context, id holdfast.ID) (holdfast.Record, error) {
	id, err := holdfast.ParseID(string(id))
	if err != nil {
		return holdfast.Record{}, fmt.Errorf("get message: %w: %w", holdfast.ErrInvalid, err)
	}
	// One snapshot for the row and its history.
	tx, err := db.snapshot(ctx, getRecord, getHistory)
	if err != nil {
		return holdfast.Record{}, fmt.Errorf("get message %s: %w", id, err)
	}
	defer func() { _ = tx.end() }()
	var payload []byte
	r, err := db.scanRecord(tx.QueryRowContext(ctx, queries[getRecord], idValue(id)), &payload)
	if errors.Is(err, sql.ErrNoRows) {
		return r, fmt.Errorf("get message %s: %w", id, holdfast.ErrNotFound)
	}
	if err != nil {
		return r, fmt.Errorf("get message %s: %w", id, err)
	}
	if r.Message.Payload = payload; payload == nil {
		r.Message.Payload = []byte{}
	}
	r.History, err = db.history(ctx, tx, &r)
	if err != nil {
		return r, fmt.Errorf("get history of message %s: %w", id, err)
	}
	return r, nil
}

// historyRows limits the history that one Get returns of a message that was tried for weeks.
const historyRows = 500

func (db *DB) history(ctx context.Context, tx *snapshot, r *holdfast.Record) (history []holdfast.Entry, err error) {
	rows, err := tx.QueryContext(ctx, queries[getHistory], r.Seq, historyRows)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		v, err := values(rows, 14)
		if err != nil {
			return nil, err
		}
		e := db.readEvent(func(i int) any { return v[i] })
		e.ID, e.Destination = r.Message.ID, r.Message.Destination
		history = append(history, e)
	}
	// If nothing follows the journal, the first enqueue and the delivery are in the row itself.
	first := holdfast.Entry{ID: r.Message.ID, Destination: r.Message.Destination, Kind: holdfast.Enqueued, At: r.Created, Cycle: 1}
	if len(history) == 0 || history[0].Kind != holdfast.Enqueued && len(history) < historyRows {
		history = append([]holdfast.Entry{first}, history...)
	}
	if last := history[len(history)-1]; r.State == holdfast.Delivered && last.State != holdfast.Delivered {
		history = append(history, holdfast.Entry{
			ID: r.Message.ID, Destination: r.Message.Destination, Kind: holdfast.Attempted, State: holdfast.Delivered,
			Outcome: holdfast.Succeeded, At: r.Settled, Cycle: r.Cycle, Attempt: r.Tries,
		})
	}
	return history, rows.Err()
}

type scanner interface{ Scan(dest ...any) error }

func (db *DB) scanRecord(s scanner, payload *[]byte) (holdfast.Record, error) {
	var r holdfast.Record
	m := &r.Message
	var id any
	var state, created, due, force, blocked, givenUp int64
	var expires, settled, ttl, last, lasts sql.NullInt64
	var reason, okey, headers, corr, retry, lastError, lastCode sql.NullString
	dest := []any{
		&r.Seq, &id, &state, &reason, &r.Failures, &r.Tries, &r.Cycle, &created, &due, &expires, &settled, &okey, &force, &blocked, &givenUp,
		&m.Source, &m.Kind, &m.Endpoint, &m.Destination, &r.Size, &headers, &corr, &retry, &ttl, &lastError, &lastCode, &last, &lasts,
	}
	if payload != nil {
		dest = append([]any{payload}, dest...)
	}
	if err := s.Scan(dest...); err != nil {
		return r, err
	}
	m.ID, m.OrderingKey, m.CorrelationID = idFrom(id), okey.String, corr.String
	m.TTL, m.Attempt = duration(ttl.Int64), holdfast.Attempt{Number: r.Tries, Cycle: r.Cycle, Forced: force == 1}
	r.Reason, r.LastError, r.LastCode = holdfast.Reason(reason.String), lastError.String, lastCode.String
	r.State = db.lanes.shown(r.Seq, holdfast.State(state))
	r.Created, r.Settled, r.LastAttempt = db.clock.wall(created), db.wall(settled), db.wall(last)
	if expires.Valid {
		r.Expires = db.clock.wall(db.clock.guard.EndByClock(expires.Int64, lasts.Int64))
	}
	if r.State == holdfast.Pending || r.State == holdfast.Parked {
		r.HeldUntil = db.clock.wall(db.clock.heldUntil(expires, lasts.Int64))
	}
	if r.LastAttempt.IsZero() && r.State == holdfast.Delivered {
		r.LastAttempt = r.Settled
	}
	if r.State == holdfast.Pending && blocked == 0 { // a blocked message is due when another one has ended
		r.Due = db.clock.wall(due)
	}
	r.Discarding = givenUp == 1 && !r.State.Final()
	db.readExtras(m, headers.String, retry.String)
	return r, nil
}

// readExtras decodes columns that are stored as text. Text that cannot be decoded is no reason to
// stop a lane or a list: the message goes on without it.
func (db *DB) readExtras(m *holdfast.Message, headers, retry string) {
	if headers != "" {
		if err := json.Unmarshal([]byte(headers), &m.Headers); err != nil {
			db.log.Error("stored headers unreadable", slog.String("message_id", string(m.ID)), slog.Any("error", err))
		}
	}
	if retry != "" {
		m.Retry = &holdfast.RetryPolicy{}
		if err := json.Unmarshal([]byte(retry), m.Retry); err != nil {
			m.Retry = nil
			db.log.Error("stored retry policy unreadable", slog.String("message_id", string(m.ID)), slog.Any("error", err))
		}
	}
}

func (db *DB) wall(at sql.NullInt64) time.Time { return db.clock.wall(at.Int64) }

// values scans a row into driver values, for functions that the readers share with the writer.
func values(rows *sql.Rows, n int) ([]any, error) {
	v, dest := make([]any, n), make([]any, n)
	for i := range v {
		dest[i] = &v[i]
	}
	return v, rows.Scan(dest...)
}
