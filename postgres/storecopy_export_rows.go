package postgres

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/belief"
	"github.com/holdfast-mq/holdfast/rows"
	"github.com/holdfast-mq/holdfast/storecopy"
)

// exporting is one call of Read.
type exporting struct {
	ctx  context.Context //nolint:containedctx // of this one call
	base int64
	conn *pgx.Conn
}

// far returns the distance of an instant, or rows.None for NULL.
func (x *exporting) far(at *int64) rows.Instant {
	if at == nil {
		return rows.None
	}
	return rows.Distance(*at, x.base, never)
}

func (x *exporting) each(query string, args []any, one func(found pgx.Rows) error) error {
	found, err := x.conn.Query(x.ctx, query, args...)
	if err != nil {
		return err
	}
	defer found.Close()
	for found.Next() {
		if err := one(found); err != nil {
			return err
		}
	}
	return found.Err()
}

// page reads one page of numbered rows, bounded by w's limits.
func (x *exporting) page(w rows.Range, query string, one func(found pgx.Rows) (rows.Row, error)) (list []rows.Row, err error) {
	after, err := w.Behind()
	if err != nil {
		return nil, err
	}
	args := []any{after, cmp.Or(w.Limit, math.MaxInt64), cmp.Or(w.Bytes, math.MaxInt64)}
	return list, x.each(query, args, func(found pgx.Rows) error {
		r, err := one(found)
		list = append(list, r)
		return err
	})
}

// plain reads rows of a table that needs nothing beyond its description.
func (x *exporting) plain(w rows.Range) (list []rows.Row, err error) {
	sql, args, err := rangeOf(w)
	if err != nil {
		return nil, err
	}
	return list, x.each(sql, args, func(found pgx.Rows) error {
		r, err := scanRow(found, w)
		list = append(list, r)
		return err
	})
}

func (x *exporting) settings(w rows.Range) ([]rows.Row, error) {
	if w.After != "" {
		return nil, nil
	}
	s := &rows.Settings{One: 1}
	if err := x.conn.QueryRow(x.ctx, exportSettings).Scan(&s.Notices, &s.Book); err != nil {
		return nil, err
	}
	var text string
	guard := belief.New(0)
	err := x.conn.QueryRow(x.ctx, exportLeaps).Scan(&text)
	if err == nil {
		err = guard.Load(text)
	}
	s.Leaps = guard.From(x.base)
	return []rows.Row{s}, err
}

func (x *exporting) message(found pgx.Rows) (rows.Row, error) {
	m := &rows.Message{}
	var id []byte
	var source, destination, kind, endpoint *string
	var queued, owned, bundled bool
	var created, due, start, expires int64
	var state *int16
	var settled, first *int64
	if err := found.Scan(&m.Seq, &id, &source, &destination, &kind, &endpoint, &created, &m.Payload, &bundled, &m.Bundle, &m.Headers, &m.CorrelationID, &m.Retry,
		&m.TTL, &m.OrderingKey, &queued, &owned, &due, &start, &m.Waits, &state, &settled,
		&expires, &m.Failures, &m.Tries, &m.Cycle, &first, &m.Force, &m.GivenUp, &m.Reason); err != nil {
		return m, err
	}
	m.ID = idFrom(id)
	switch {
	case source == nil || destination == nil:
		return m, fmt.Errorf("%w: the names of %s (seq %d) are lost", storecopy.ErrContent, m.ID, m.Seq)
	case queued == (state != nil):
		return m, fmt.Errorf("%w: %s (seq %d) has no state, or two", storecopy.ErrContent, m.ID, m.Seq)
	}
	m.Source, m.Destination, m.Kind, m.Endpoint = *source, *destination, *kind, *endpoint
	m.Created, m.Expires, m.FirstTry, m.Settled = rows.Instant(created-x.base), rows.Distance(expires, x.base, never), x.far(first), x.far(settled)
	m.Due, m.Start = rows.None, rows.None
	if state != nil {
		m.State = holdfast.State(*state)
	}
	if m.Broken = bundled && m.Bundle == 0; m.Broken && m.State != holdfast.Delivered && m.State != holdfast.Discarded {
		return m, fmt.Errorf("%w: the payload of %s to %s is lost: discard it (holdfast messages discard %s)", storecopy.ErrContent, m.ID, m.Destination, m.ID)
	}
	if state != nil {
		return m, nil
	}
	if owned { // a node died while it had the message in hand
		m.Tries++
		if m.FirstTry == rows.None {
			m.FirstTry = 0
		}
	}
	if !m.Waits {
		m.Due = rows.Distance(due, x.base, never)
	} else if start > created {
		m.Start = rows.Instant(start - x.base)
	}
	return m, nil
}

func (x *exporting) event(found pgx.Rows) (rows.Row, error) {
	e := &rows.Entry{}
	err := found.Scan(&e.Seq, &e.Message, &e.Kind, &e.State, &e.At, &e.Cycle, &e.Attempt, &e.Outcome, &e.Charged, &e.Maybe, &e.Took,
		&e.Reason, &e.Code, &e.Error, &e.Actor)
	e.At -= rows.Instant(x.base)
	return e, err
}

func (x *exporting) incoming(found pgx.Rows) (rows.Row, error) {
	in := &rows.Incoming{}
	var id []byte
	var source, kind *string
	var received, expires int64
	var processed *int64
	if err := found.Scan(&in.Seq, &source, &id, &in.Endpoint, &in.Hash, &in.Kept, &received, &processed, &expires, &in.Response,
		&kind, &in.Payload, &in.Headers, &in.CorrelationID); err != nil {
		return in, err
	}
	in.ID = idFrom(id)
	switch {
	case source == nil:
		return in, fmt.Errorf("%w: the sender of incoming message %s (seq %d) is lost", storecopy.ErrContent, in.ID, in.Seq)
	case in.Kept && kind == nil:
		return in, fmt.Errorf("%w: the content of incoming message %s (seq %d) is lost", storecopy.ErrContent, in.ID, in.Seq)
	}
	in.Source, in.Received, in.Processed, in.Expires = *source, rows.Instant(received-x.base), x.far(processed), rows.Distance(expires, x.base, never)
	if in.Kept {
		in.Kind = *kind
	}
	return in, nil
}

func (x *exporting) notification(found pgx.Rows) (rows.Row, error) {
	n := &rows.Notification{Enqueued: int64(rows.None), Settled: rows.None, Tried: rows.None}
	var id, message []byte
	var state, failures, tries, cycle int64
	var reason, lastError string
	var created int64
	var enqueued, delivered, settled, tried *int64
	if err := found.Scan(&n.Seq, &n.Bundle, &n.Copy, &id, &message, &n.Channel, &n.Type, &n.List, &n.Subject, &n.Site, &n.Instance, &n.Script, &n.Execution,
		&n.Parent, &enqueued, &created, &delivered, &n.Purged, &state, &settled, &tried, &failures, &tries, &cycle, &reason, &lastError); err != nil {
		return n, err
	}
	n.ID, n.Message = idFrom(id), idFrom(message)
	if enqueued != nil {
		n.Enqueued = *enqueued
	}
	n.Created, n.Delivered = rows.Instant(created-x.base), x.far(delivered)
	if n.Purged {
		n.State, n.Settled, n.Tried, n.Failures, n.Tries, n.Cycle, n.Reason, n.LastError = state, x.far(settled), x.far(tried), failures, tries, cycle, reason, lastError
	}
	return n, nil
}
