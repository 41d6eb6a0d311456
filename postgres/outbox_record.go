package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
)

// Get implements holdfast.Outbox.
func (db *DB) Get(ctx context.Context, id holdfast.ID) (holdfast.Record, error) {
	id, err := holdfast.ParseID(string(id))
	if err != nil {
		return holdfast.Record{}, fmt.Errorf("get message: %w: %w", holdfast.ErrInvalid, err)
	}
	var r holdfast.Record
	var payload []byte
	found := false
	err = db.read(ctx, getRecord, []any{idBytes(id)}, func(rows pgx.Rows) error {
		found = true
		r, err = db.scanRecord(rows, &payload)
		return err
	})
	switch {
	case err != nil:
		return r, fmt.Errorf("get message %s: %w", id, err)
	case !found:
		return r, fmt.Errorf("get message %s: %w", id, holdfast.ErrNotFound)
	}
	r.Message.Payload = payload
	if r.History, err = db.history(ctx, &r); err != nil {
		return r, fmt.Errorf("get history of message %s: %w", id, err)
	}
	return r, nil
}

// Standing implements holdfast.Shared.
func (db *DB) Standing(ctx context.Context, id holdfast.ID) (s holdfast.Standing, err error) {
	found := false
	err = db.read(ctx, getStanding, []any{idBytes(id)}, func(rows pgx.Rows) error {
		found = true
		var state int16
		err := rows.Scan(&state, &s.Tries, &s.Cycle)
		s.State = holdfast.State(state)
		return err
	})
	if err == nil && !found {
		err = holdfast.ErrNotFound
	}
	if err != nil {
		return s, fmt.Errorf("look at message %s: %w", id, err)
	}
	return s, nil
}

// historyRows bounds how many entries one Get returns; a message may have been tried for weeks.
const historyRows = 500

// history reads the history after its record, in a separate snapshot, so it may be a moment newer.
func (db *DB) history(ctx context.Context, r *holdfast.Record) (history []holdfast.Entry, err error) {
	if err := db.read(ctx, getHistory, []any{r.Seq, historyRows}, func(rows pgx.Rows) error {
		var e holdfast.Entry
		err := db.scanEvent(rows, &e)
		e.ID, e.Destination = r.Message.ID, r.Message.Destination
		history = append(history, e)
		return err
	}); err != nil {
		return nil, err
	}
	// Unless the journal has a follower, the first enqueue and the delivery are recorded only in
	// the row itself.
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
	return history, nil
}

// scanEvent reads eventColumns, after the columns that the row begins with.
func (db *DB) scanEvent(rows pgx.Rows, e *holdfast.Entry, before ...any) error {
	var at, took int64
	var kind, state, outcome int16
	err := rows.Scan(append(before, &e.Seq, &kind, &state, &at, &e.Cycle, &e.Attempt, &outcome, &e.Charged, &e.Maybe, &took,
		&e.Reason, &e.Code, &e.Error, &e.Actor)...)
	e.Kind, e.State, e.Outcome = holdfast.EntryKind(kind), holdfast.State(state), holdfast.Outcome(outcome)
	e.At, e.Took = db.clock.wall(at), duration(took)
	return err
}

func (db *DB) scanRecord(rows pgx.Rows, payload *[]byte) (r holdfast.Record, err error) {
	m := &r.Message
	var id []byte
	var state, blocked int16
	var created, due, expires, settled, ttl, last, lasts int64
	var force, givenUp bool
	var headers, retry *string
	dest := []any{
		&r.Seq, &id, &state, &r.Reason, &r.Failures, &r.Tries, &r.Cycle, &created, &due, &expires, &settled, &m.OrderingKey, &force, &blocked, &givenUp,
		&m.Source, &m.Kind, &m.Endpoint, &m.Destination, &r.Size, &headers, &m.CorrelationID, &retry, &ttl, &r.LastError, &r.LastCode, &last, &lasts,
	}
	if payload != nil {
		dest = append([]any{payload}, dest...)
	}
	if err := rows.Scan(dest...); err != nil {
		return r, err
	}
	m.ID, m.TTL, m.Attempt = idFrom(id), duration(ttl), holdfast.Attempt{Number: r.Tries, Cycle: r.Cycle, Forced: force}
	r.State = holdfast.State(state)
	r.Created, r.Settled, r.LastAttempt = db.clock.wall(created), db.clock.wall(settled), db.clock.wall(last)
	if expires != never {
		r.Expires = db.clock.wall(db.clock.guard.EndByClock(expires, lasts))
		if r.State == holdfast.Pending || r.State == holdfast.Parked {
			r.HeldUntil = db.clock.wall(db.clock.heldUntil(expires, lasts))
		}
	}
	if r.LastAttempt.IsZero() && r.State == holdfast.Delivered {
		r.LastAttempt = r.Settled
	}
	if r.State == holdfast.Pending && blocked == 0 { // a blocked message becomes due when another one has left
		r.Due = db.clock.wall(due)
	}
	r.Discarding = givenUp
	db.readExtras(m, headers, retry)
	return r, nil
}

// instant converts a time that another machine's clock has shown.
func instant(us int64) time.Time {
	if us == 0 || us == never {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}
