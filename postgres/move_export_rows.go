package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/belief"
	"github.com/holdfast-mq/holdfast/move"
)

// exporting is one call of Read.
type exporting struct {
	ctx  context.Context //nolint:containedctx // of this one call
	base int64
	conn *pgx.Conn
}

// far is the distance of an instant, of which NULL is none.
func (x *exporting) far(at *int64) int64 {
	if at == nil {
		return move.None
	}
	return move.Distance(*at, x.base, never)
}

func (x *exporting) page(p *move.Page, query string, after int64, one func(rows pgx.Rows) (int64, int, error)) error {
	n, bytes := 0, 0
	p.Last = after
	err := x.each(query, []any{after, move.PageRows, move.PageBytes}, func(rows pgx.Rows) error {
		seq, size, err := one(rows)
		n, bytes, p.Last = n+1, bytes+size, seq
		return err
	})
	p.End = n < move.PageRows && bytes < move.PageBytes
	return err
}

func (x *exporting) each(query string, args []any, one func(rows pgx.Rows) error) error {
	rows, err := x.conn.Query(x.ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := one(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (x *exporting) settings() (*move.Config, error) {
	c := &move.Config{}
	if err := x.each(exportLanes, nil, func(rows pgx.Rows) error {
		var l move.Lane
		var since, decided *int64
		err := rows.Scan(&l.Destination, &l.Strict, &l.Fault, &since, &l.Paused, &decided, &l.DecidedBy)
		l.FaultSince, l.Decided = x.far(since), x.far(decided)
		c.Lanes = append(c.Lanes, l)
		return err
	}); err != nil {
		return nil, err
	}
	if err := x.each(exportAccess, nil, func(rows pgx.Rows) error {
		var t move.Token
		var created, used *int64
		err := rows.Scan(&t.Name, &t.Role, &t.Hash, &created, &used)
		t.Created, t.Used = x.far(created), x.far(used)
		c.Tokens = append(c.Tokens, t)
		return err
	}); err != nil {
		return nil, err
	}
	if err := x.each(exportSites, nil, func(rows pgx.Rows) error {
		var s move.Site
		var created, token, former, enrolled, seen, revoked *int64
		err := rows.Scan(&s.Name, &created, &s.Token, &token, &s.Credential, &s.Former, &former, &enrolled, &seen, &s.Version, &revoked)
		s.Created, s.TokenUntil, s.FormerUntil = x.far(created), x.far(token), x.far(former)
		s.Enrolled, s.Seen, s.Revoked = x.far(enrolled), x.far(seen), x.far(revoked)
		c.Sites = append(c.Sites, s)
		return err
	}); err != nil {
		return nil, err
	}
	if err := x.each(exportNotices, nil, func(rows pgx.Rows) error { return rows.Scan(&c.Notices) }); err != nil {
		return nil, err
	}
	if err := x.each(exportLeaps, nil, func(rows pgx.Rows) error {
		var text string
		guard := belief.New(0)
		err := errors.Join(rows.Scan(&text), guard.Load(text))
		c.Leaps = guard.From(x.base)
		return err
	}); err != nil {
		return nil, err
	}
	return c, x.book(c)
}

func (x *exporting) message(rows pgx.Rows) (m move.Message, err error) {
	var id []byte
	var source, destination, kind, endpoint *string
	var queued, owned bool
	var created, due, start, expires int64
	var state *int16
	var settled, first *int64
	if err := rows.Scan(&m.Seq, &id, &source, &destination, &kind, &endpoint, &created, &m.Payload, &m.Headers, &m.CorrelationID, &m.Retry,
		&m.TTL, &m.OrderingKey, &queued, &owned, &due, &start, &m.Waits, &state, &settled,
		&expires, &m.Failures, &m.Tries, &m.Cycle, &first, &m.Force, &m.GivenUp, &m.Reason); err != nil {
		return m, err
	}
	m.ID = idFrom(id)
	switch {
	case source == nil || destination == nil:
		return m, fmt.Errorf("%w: the names of %s (seq %d) are lost", move.ErrContent, m.ID, m.Seq)
	case queued == (state != nil):
		return m, fmt.Errorf("%w: %s (seq %d) stands nowhere, or twice", move.ErrContent, m.ID, m.Seq)
	}
	m.Source, m.Destination, m.Kind, m.Endpoint = *source, *destination, *kind, *endpoint
	m.Created, m.Expires, m.FirstTry, m.Settled = created-x.base, move.Distance(expires, x.base, never), x.far(first), x.far(settled)
	m.Due, m.Start = move.None, move.None
	if state != nil {
		m.State = holdfast.State(*state)
		return m, nil
	}
	if owned { // of a node that died with it in hand
		m.Tries++
		if m.FirstTry == move.None {
			m.FirstTry = 0
		}
	}
	if !m.Waits {
		m.Due = move.Distance(due, x.base, never)
	} else if start > created {
		m.Start = start - x.base
	}
	return m, nil
}

func (x *exporting) event(rows pgx.Rows) (e move.Event, err error) {
	err = rows.Scan(&e.Seq, &e.Message, &e.Kind, &e.State, &e.At, &e.Cycle, &e.Attempt, &e.Outcome, &e.Charged, &e.Maybe, &e.Took,
		&e.Reason, &e.Code, &e.Error, &e.Actor)
	e.At -= x.base
	return e, err
}

func (x *exporting) incoming(rows pgx.Rows) (in move.Incoming, err error) {
	var id []byte
	var source, kind *string
	var received, expires int64
	var processed *int64
	if err := rows.Scan(&in.Seq, &source, &id, &in.Endpoint, &in.Hash, &in.Kept, &received, &processed, &expires, &in.Response,
		&kind, &in.Payload, &in.Headers, &in.CorrelationID); err != nil {
		return in, err
	}
	in.ID = idFrom(id)
	switch {
	case source == nil:
		return in, fmt.Errorf("%w: the sender of incoming message %s (seq %d) is lost", move.ErrContent, in.ID, in.Seq)
	case in.Kept && kind == nil:
		return in, fmt.Errorf("%w: the content of incoming message %s (seq %d) is lost", move.ErrContent, in.ID, in.Seq)
	}
	in.Source, in.Received, in.Processed, in.Expires = *source, received-x.base, x.far(processed), move.Distance(expires, x.base, never)
	if in.Kept {
		in.Kind = *kind
	}
	return in, nil
}
