package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/move"
)

// exporting is one call of Read.
type exporting struct {
	ctx  context.Context //nolint:containedctx // of this one call
	base int64
	db   *sql.DB
}

// far is the distance of an instant, of which NULL is none.
func (x *exporting) far(at sql.NullInt64) int64 {
	if !at.Valid {
		return move.None
	}
	return move.Distance(at.Int64, x.base, never)
}

// page reads rows until there are enough of them. one returns the number of a
// row and its bytes.
func (x *exporting) page(p *move.Page, query string, after int64, one func(rows *sql.Rows) (int64, int, error)) (err error) {
	rows, err := x.db.QueryContext(x.ctx, query, after, move.PageRows)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	n, bytes := 0, 0
	p.Last = after
	for bytes < move.PageBytes && rows.Next() {
		seq, size, err := one(rows)
		if err != nil {
			return err
		}
		n, bytes, p.Last = n+1, bytes+size, seq
	}
	p.End = n < move.PageRows && bytes < move.PageBytes
	return rows.Err()
}

func (x *exporting) settings() (c *move.Config, err error) {
	c = &move.Config{}
	if err := x.each(exportLanes, func(rows *sql.Rows) error {
		var l move.Lane
		var strict int64
		var since, decided sql.NullInt64
		err := rows.Scan(&l.Destination, &strict, &l.Fault, &since, &l.Paused, &decided, &l.DecidedBy)
		l.Strict, l.FaultSince, l.Decided = strict == orderStrict, x.far(since), x.far(decided)
		c.Lanes = append(c.Lanes, l)
		return err
	}); err != nil {
		return nil, err
	}
	if err := x.each(exportAccess, func(rows *sql.Rows) error {
		var t move.Token
		var created, used sql.NullInt64
		err := rows.Scan(&t.Name, &t.Role, &t.Hash, &created, &used)
		t.Created, t.Used = x.far(created), x.far(used)
		c.Tokens = append(c.Tokens, t)
		return err
	}); err != nil {
		return nil, err
	}
	if err := x.each(exportSites, func(rows *sql.Rows) error {
		var s move.Site
		var created, token, former, enrolled, seen, revoked sql.NullInt64
		err := rows.Scan(&s.Name, &created, &s.Token, &token, &s.Credential, &s.Former, &former, &enrolled, &seen, &s.Version, &revoked)
		s.Created, s.TokenUntil, s.FormerUntil = x.far(created), x.far(token), x.far(former)
		s.Enrolled, s.Seen, s.Revoked = x.far(enrolled), x.far(seen), x.far(revoked)
		c.Sites = append(c.Sites, s)
		return err
	}); err != nil {
		return nil, err
	}
	if err := x.each(exportNotices, func(rows *sql.Rows) error { return rows.Scan(&c.Notices) }); err != nil {
		return nil, err
	}
	return c, x.book(c)
}

func (x *exporting) each(query string, one func(rows *sql.Rows) error, args ...any) (err error) {
	rows, err := x.db.QueryContext(x.ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := one(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (x *exporting) message(rows *sql.Rows) (m move.Message, err error) {
	var id any
	var source, destination, kind, endpoint sql.NullString
	var state, created int64
	var due, expires, first, settled, start, hash sql.NullInt64
	if err := rows.Scan(&m.Seq, &id, &source, &destination, &kind, &endpoint, &state, &due, &created, &expires, &m.Failures, &m.Tries, &m.Cycle, &first, &settled,
		&m.Reason, &m.OrderingKey, &m.Waits, &m.Force, &m.GivenUp, &m.Payload, &m.Headers, &m.CorrelationID, &m.Retry, &m.TTL, &start, &hash); err != nil {
		return m, err
	}
	if m.ID = idFrom(id); !destination.Valid || m.ID == "" {
		return m, fmt.Errorf("%w: the names of the message with seq %d are lost", ErrDamaged, m.Seq)
	}
	m.Source, m.Destination, m.Kind, m.Endpoint, m.State = source.String, destination.String, kind.String, endpoint.String, holdfast.State(state)
	m.Created, m.Expires, m.FirstTry, m.Settled = created-x.base, x.far(expires), x.far(first), x.far(settled)
	m.Due, m.Start = move.None, move.None
	m.Broken = !hash.Valid || hash.Int64 != contentOf(&m)
	switch {
	case m.Broken && m.State != holdfast.Delivered && m.State != holdfast.Discarded:
		return m, fmt.Errorf("%w: %s to %s is damaged, it is not what was accepted: start the node, have it parked and discard it (holdfast messages discard %s)",
			move.ErrContent, m.ID, m.Destination, m.ID)
	case m.State == holdfast.Claimed: // of a process that died with it in hand
		m.State, m.Tries = holdfast.Pending, m.Tries+1
		if m.FirstTry == move.None {
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

// contentOf is what messageHash of a message is.
func contentOf(m *move.Message) int64 {
	return messageHash(&holdfast.Message{
		ID: m.ID, Source: m.Source, Destination: m.Destination, Kind: holdfast.Kind(m.Kind), Endpoint: m.Endpoint,
		OrderingKey: m.OrderingKey, Payload: m.Payload, CorrelationID: m.CorrelationID, TTL: duration(m.TTL),
	}, m.Headers, m.Retry)
}

func (x *exporting) event(rows *sql.Rows) (e move.Event, err error) {
	err = rows.Scan(&e.Seq, &e.Message, &e.Kind, &e.State, &e.At, &e.Cycle, &e.Attempt, &e.Outcome, &e.Charged, &e.Maybe, &e.Took,
		&e.Reason, &e.Code, &e.Error, &e.Actor)
	e.At -= x.base
	return e, err
}

func (x *exporting) incoming(rows *sql.Rows) (in move.Incoming, err error) {
	var id any
	var source sql.NullString
	var received int64
	var processed, expires, hash sql.NullInt64
	if err := rows.Scan(&in.Seq, &source, &id, &in.Endpoint, &in.Hash, &in.Kept, &received, &processed, &expires, &in.Response,
		&in.Kind, &in.Payload, &in.Headers, &in.CorrelationID, &hash); err != nil {
		return in, err
	}
	if in.ID = idFrom(id); !source.Valid || in.ID == "" {
		return in, fmt.Errorf("%w: the names of the incoming message with seq %d are lost", ErrDamaged, in.Seq)
	}
	in.Source, in.Received, in.Processed, in.Expires = source.String, received-x.base, x.far(processed), x.far(expires)
	if in.Kept && (!hash.Valid || hash.Int64 != keptContentOf(&in)) {
		return in, fmt.Errorf("%w: incoming message %s from %s is damaged; note it as done (holdfast inbox done), or ask its sender", move.ErrContent, in.ID, in.Source)
	}
	return in, nil
}

// keptContentOf is what messageHash of a kept message is.
func keptContentOf(in *move.Incoming) int64 {
	return messageHash(&holdfast.Message{
		ID: in.ID, Source: in.Source, Kind: holdfast.Kind(in.Kind), Endpoint: in.Endpoint, Payload: in.Payload, CorrelationID: in.CorrelationID,
	}, in.Headers, "")
}
