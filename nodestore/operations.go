package nodestore

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/rows"
	"github.com/holdfast-mq/holdfast/track"
)

// A purge writes the records, and deletes them when the time of tracking is over: Purge of the stores.
const (
	pastOperation = `SELECT seq, id, category, destination, endpoint, source, origin, retry, state, reason, failures, tries, cycle, code, error,
		created, coalesce(tried, -9223372036854775807 - 1), settled FROM hf_operation WHERE id = $1 ORDER BY seq DESC LIMIT 1`
	pastOperations = `SELECT seq, id, category, destination, endpoint, source, origin, retry, state, reason, failures, tries, cycle, code, error,
		created, coalesce(tried, -9223372036854775807 - 1), settled FROM hf_operation WHERE seq < $1 ORDER BY seq DESC LIMIT $2`
)

// Operations keeps what became of operations whose messages are purged.
type Operations struct{ db side.Store }

var _ track.Past = (*Operations)(nil)

// PastOperation implements track.Past.
func (s *Operations) PastOperation(ctx context.Context, id holdfast.ID) (o track.Operation, err error) {
	found := false
	err = s.db.Read(ctx, pastOperation, []any{string(id)}, func(scan side.Scan) (err error) {
		found = true
		o, err = s.operation(scan)
		return err
	})
	if err == nil && !found {
		err = holdfast.ErrNotFound
	}
	if err != nil {
		return o, fmt.Errorf("get operation %s: %w", id, err)
	}
	return o, nil
}

// PastOperations implements track.Past.
func (s *Operations) PastOperations(ctx context.Context, before int64, limit int) (list []track.Operation, err error) {
	if err := s.db.Read(ctx, pastOperations, []any{before, int64(limit)}, func(scan side.Scan) error {
		o, err := s.operation(scan)
		list = append(list, o)
		return err
	}); err != nil {
		return nil, fmt.Errorf("list operations: %w", err)
	}
	return list, nil
}

// operation reads a row as a message that is gone.
func (s *Operations) operation(scan side.Scan) (track.Operation, error) {
	var o rows.Operation
	var created, tried, settled int64
	if err := scan(&o.Seq, &o.ID, &o.Category, &o.Destination, &o.Endpoint, &o.Source, &o.Origin, &o.Retry, &o.State, &o.Reason,
		&o.Failures, &o.Tries, &o.Cycle, &o.Code, &o.Error, &created, &tried, &settled); err != nil {
		return track.Operation{}, err
	}
	r := holdfast.Record{
		Message: holdfast.Message{ID: holdfast.ID(o.ID), Destination: o.Destination, Endpoint: o.Endpoint, Source: o.Source},
		Seq:     o.Seq, State: holdfast.State(o.State), Reason: holdfast.Reason(o.Reason), Failures: int(o.Failures), Tries: int(o.Tries), Cycle: int(o.Cycle),
		LastError: o.Error, LastCode: o.Code,
		Created: s.db.Time(rows.Instant(created)), LastAttempt: s.db.Time(rows.Instant(tried)), Settled: s.db.Time(rows.Instant(settled)),
	}
	if json.Unmarshal([]byte(o.Origin), &r.Message.Headers) != nil {
		r.Message.Headers = nil // the operation is shown without it
	}
	if p := new(holdfast.RetryPolicy); json.Unmarshal([]byte(o.Retry), p) == nil {
		r.Message.Retry = p
	}
	past := track.Of(&r)
	past.Category, past.Purged = holdfast.Category(o.Category), true
	return past, nil
}
