package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/belief"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/rows"
	"github.com/holdfast-mq/holdfast/storecopy"
)

// exporting is one call of Read.
type exporting struct {
	ctx  context.Context //nolint:containedctx // of this call
	base int64
	db   *sql.DB
}

// far returns the distance of an instant. NULL means an absent instant.
func (x *exporting) far(at sql.NullInt64) rows.Instant {
	if !at.Valid {
		return rows.None
	}
	return rows.Distance(at.Int64, x.base, never)
}

// page reads numbered rows until there are enough of them.
func (x *exporting) page(w rows.Range, query string, one func(found *sql.Rows) (rows.Row, error)) (list []rows.Row, err error) {
	after, err := w.Behind()
	if err != nil {
		return nil, err
	}
	found, err := x.db.QueryContext(x.ctx, query, after, cmp.Or(w.Limit, math.MaxInt64))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	bytes := int64(0)
	for (w.Bytes == 0 || bytes < w.Bytes) && found.Next() {
		r, err := one(found)
		if err != nil {
			return nil, err
		}
		list, bytes = append(list, r), bytes+int64(w.Table.Size(r))
	}
	return list, found.Err()
}

func (x *exporting) settings(w rows.Range, guard *belief.Guard) ([]rows.Row, error) {
	if w.After != "" {
		return nil, nil
	}
	s := &rows.Settings{One: 1, Leaps: guard.From(w.Base)}
	return []rows.Row{s}, x.db.QueryRowContext(x.ctx, exportSettings).Scan(&s.Notices, &s.Book)
}

func (x *exporting) message(found *sql.Rows) (rows.Row, error) {
	m := &rows.Message{}
	var id any
	var source, destination, kind, endpoint sql.NullString
	var state, created int64
	var due, expires, first, settled, start, hash sql.NullInt64
	if err := found.Scan(&m.Seq, &id, &source, &destination, &kind, &endpoint, &state, &due, &created, &expires, &m.Failures, &m.Tries, &m.Cycle, &first, &settled,
		&m.Reason, &m.OrderingKey, &m.Waits, &m.Force, &m.GivenUp, &m.Bundle, &m.Payload, &m.Headers, &m.CorrelationID, &m.Retry, &m.TTL, &start, &hash); err != nil {
		return m, err
	}
	if m.ID = idFrom(id); !destination.Valid || m.ID == "" {
		return m, fmt.Errorf("%w: the names of the message with seq %d are lost", ErrDamaged, m.Seq)
	}
	m.Source, m.Destination, m.Kind, m.Endpoint, m.State = source.String, destination.String, kind.String, endpoint.String, holdfast.State(state)
	m.Created, m.Expires, m.FirstTry, m.Settled = rows.Instant(created-x.base), x.far(expires), x.far(first), x.far(settled)
	m.Due, m.Start = rows.None, rows.None
	m.Broken = !hash.Valid || hash.Int64 != contentOf(m, m.Payload)
	if m.Bundle != 0 {
		m.Payload = nil // the payload is its own row
	}
	switch {
	case m.Broken && m.State != holdfast.Delivered && m.State != holdfast.Discarded:
		return m, fmt.Errorf("%w: %s to %s is damaged, it is not what was accepted: start the node, have it parked and discard it (holdfast messages discard %s)",
			storecopy.ErrContent, m.ID, m.Destination, m.ID)
	case m.State == holdfast.Claimed: // by a process that died with the message in hand
		m.State, m.Tries = holdfast.Pending, m.Tries+1
		if m.FirstTry == rows.None {
			m.FirstTry = 0
		}
	}
	if m.State != holdfast.Pending {
		m.Waits = false
		return m, nil
	}
	if !m.Waits {
		m.Due = x.far(due)
	} else {
		m.Start = x.far(start)
	}
	return m, nil
}

// contentOf returns what messageHash returns for a message.
func contentOf(m *rows.Message, payload []byte) int64 {
	return messageHash(&holdfast.Message{
		ID: m.ID, Source: m.Source, Destination: m.Destination, Kind: holdfast.Kind(m.Kind), Endpoint: m.Endpoint,
		OrderingKey: m.OrderingKey, Payload: payload, CorrelationID: m.CorrelationID, TTL: duration(m.TTL),
	}, m.Headers, m.Retry)
}

func (x *exporting) event(found *sql.Rows) (rows.Row, error) {
	e := &rows.Entry{}
	err := found.Scan(&e.Seq, &e.Message, &e.Kind, &e.State, &e.At, &e.Cycle, &e.Attempt, &e.Outcome, &e.Charged, &e.Maybe, &e.Took,
		&e.Reason, &e.Code, &e.Error, &e.Actor)
	e.At -= rows.Instant(x.base)
	return e, err
}

func (x *exporting) incoming(found *sql.Rows) (rows.Row, error) {
	in := &rows.Incoming{}
	var id any
	var source sql.NullString
	var received int64
	var processed, expires, hash sql.NullInt64
	var answer any
	if err := found.Scan(&in.Seq, &source, &id, &in.Endpoint, &in.Hash, &in.Kept, &received, &processed, &expires, &in.Response, &answer,
		&in.Kind, &in.Payload, &in.Headers, &in.CorrelationID, &hash); err != nil {
		return in, err
	}
	if in.ID = idFrom(id); !source.Valid || in.ID == "" {
		return in, fmt.Errorf("%w: the names of the incoming message with seq %d are lost", ErrDamaged, in.Seq)
	}
	in.Source, in.Received, in.Processed, in.Expires = source.String, rows.Instant(received-x.base), x.far(processed), x.far(expires)
	if !answerIntact(in.ID, in.Response, answer) {
		in.Response = nil // the id matters; a wrong response is worse than no response
	}
	if in.Kept && (!hash.Valid || hash.Int64 != keptContentOf(in)) {
		return in, fmt.Errorf("%w: incoming message %s from %s is damaged; note it as done (holdfast inbox done), or ask its sender", storecopy.ErrContent, in.ID, in.Source)
	}
	return in, nil
}

// keptContentOf returns what messageHash returns for a kept message.
func keptContentOf(in *rows.Incoming) int64 {
	return messageHash(&holdfast.Message{
		ID: in.ID, Source: in.Source, Kind: holdfast.Kind(in.Kind), Endpoint: in.Endpoint, Payload: in.Payload, CorrelationID: in.CorrelationID,
	}, in.Headers, "")
}

func (x *exporting) notification(found *sql.Rows) (rows.Row, error) {
	n := &rows.Notification{Enqueued: int64(rows.None), Settled: rows.None, Tried: rows.None}
	var id, message any
	var enqueued, delivered, state, settled, tried sql.NullInt64
	var created int64
	if err := found.Scan(&n.Seq, &n.Copy, &id, &message, &n.Channel, &n.Type, &n.List, &n.Subject, &n.Bundle, &n.Site, &n.Instance, &n.Script, &n.Execution,
		&n.Parent, &enqueued, &created, &delivered, &state, &settled, &tried, &n.Failures, &n.Tries, &n.Cycle, &n.Reason, &n.LastError); err != nil {
		return n, err
	}
	n.ID, n.Message = idFrom(id), idFrom(message)
	if message == nil {
		n.Message = notify.MessageID(n.Site, n.ID, "")
	}
	if enqueued.Valid {
		n.Enqueued = enqueued.Int64
	}
	n.Created, n.Delivered = rows.Instant(created-x.base), x.far(delivered)
	if state.Valid {
		n.Purged, n.State, n.Settled, n.Tried = true, state.Int64, x.far(settled), x.far(tried)
	}
	return n, nil
}
