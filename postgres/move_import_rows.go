package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/belief"
	"github.com/holdfast-mq/holdfast/move"
)

// importing is one page on its way into the tables.
type importing struct {
	t    *Target
	tx   pgx.Tx
	ctx  context.Context //nolint:containedctx // of this one page
	base int64
	sums sums
}

// at is an instant, or never.
func (im *importing) at(distance int64) int64 { return move.Instant(distance, im.base, never) }

// orNull is an instant, or NULL.
func (im *importing) orNull(distance int64) *int64 {
	if distance == move.None {
		return nil
	}
	at := im.at(distance)
	return &at
}

// intern finds or makes the number of a name.
func (im *importing) intern(sql string, args ...any) (id int32, err error) {
	err = im.tx.QueryRow(im.ctx, sql, args...).Scan(&id)
	return id, err
}

func (im *importing) settings(c *move.Config) error {
	for _, l := range c.Lanes {
		lane, err := im.intern(internLane, l.Destination)
		if err != nil {
			return fmt.Errorf("lane %s: %w", l.Destination, err)
		}
		if _, err := im.tx.Exec(im.ctx, importLane, lane, l.Strict, nullText(l.Fault), im.orNull(l.FaultSince),
			l.Paused, im.orNull(l.Decided), nullText(l.DecidedBy)); err != nil {
			return fmt.Errorf("lane %s: %w", l.Destination, err)
		}
	}
	for _, t := range c.Tokens {
		if _, err := im.tx.Exec(im.ctx, importAccess, t.Name, t.Role, t.Hash, im.at(t.Created), im.orNull(t.Used)); err != nil {
			return fmt.Errorf("token %s: %w", t.Name, err)
		}
	}
	for _, s := range c.Sites {
		if _, err := im.tx.Exec(im.ctx, importSite, s.Name, im.at(s.Created), s.Token, im.orNull(s.TokenUntil), s.Credential, s.Former, im.orNull(s.FormerUntil),
			im.orNull(s.Enrolled), im.orNull(s.Seen), nullText(s.Version), im.orNull(s.Revoked)); err != nil {
			return fmt.Errorf("site %s: %w", s.Name, err)
		}
	}
	if _, err := im.tx.Exec(im.ctx, setNotifyMask, fmt.Sprint(c.Notices)); err != nil {
		return err
	}
	if err := im.leaps(c.Leaps); err != nil {
		return fmt.Errorf("leaps of the clock: %w", err)
	}
	return im.book(c)
}

func (im *importing) leaps(leaps []belief.Leap) error {
	var text string
	if err := im.tx.QueryRow(im.ctx, exportLeaps).Scan(&text); err != nil {
		return err
	}
	guard := belief.New(0)
	if err := guard.Load(text); err != nil {
		return err
	}
	guard.Add(im.base, leaps...)
	_, err := im.tx.Exec(im.ctx, importLeaps, guard.Text())
	return err
}

func (im *importing) route(m *move.Message) (r route, err error) {
	k := routeKey{m.Source, m.Destination, m.Endpoint, holdfast.Kind(m.Kind)}
	if r, ok := im.t.routes[k]; ok {
		return r, nil
	}
	if r.lane, err = im.intern(internLane, k.destination); err != nil {
		return r, err
	}
	if r.route, err = im.intern(internRoute, r.lane, k.source, string(k.kind), k.endpoint); err != nil {
		return r, err
	}
	if len(im.t.routes) >= namesMost {
		clear(im.t.routes)
	}
	im.t.routes[k] = r
	return r, nil
}

func (im *importing) source(name string) (id int32, err error) {
	if id, ok := im.t.sources[name]; ok {
		return id, nil
	}
	if id, err = im.intern(internSource, name); err != nil {
		return id, err
	}
	if len(im.t.sources) >= namesMost {
		clear(im.t.sources)
	}
	im.t.sources[name] = id
	return id, nil
}

// messages writes what was accepted, and where each stands.
func (im *importing) messages(page *move.Page) error {
	if len(page.Messages) == 0 {
		return nil
	}
	var messages, queue, final [][]any
	for i := range page.Messages {
		m := &page.Messages[i]
		err := keepable(m.Source, m.Destination, m.Kind, m.Endpoint, m.CorrelationID, m.OrderingKey, m.Headers, m.Retry)
		var r route
		if err == nil {
			r, err = im.route(m)
		}
		if err != nil {
			return fmt.Errorf("message %s: %w", m.ID, err)
		}
		created, key := im.base+m.Created, nullText(m.OrderingKey)
		start := created
		if m.Start != move.None {
			start = im.at(m.Start)
		}
		payload := m.Payload
		if payload == nil {
			payload = []byte{}
		}
		messages = append(messages, []any{
			m.Seq, idBytes(m.ID), r.route, r.lane, created, payload, nullText(m.Headers), nullText(m.CorrelationID), nullText(m.Retry), start - created, nullNumber(m.TTL), key,
		})
		if m.State != holdfast.Pending {
			final = append(final, []any{
				m.Seq, r.lane, int16(m.State), im.settled(m), im.at(m.Expires), m.Failures, m.Tries, m.Cycle, im.orNull(m.FirstTry), m.Force, nullText(m.Reason), key,
			})
			im.sums.add(r.lane, countsOf(m.State))
			continue
		}
		due, blocked := im.at(m.Due), int16(0)
		if m.Waits {
			due, blocked = im.at(m.Expires), 1
		}
		queue = append(queue, []any{
			m.Seq, r.lane, due, start, im.at(m.Expires), m.Failures, m.Tries, m.Cycle, im.orNull(m.FirstTry), blocked, m.Force, m.GivenUp, key,
		})
		im.sums.add(r.lane, holdfast.LaneCounts{Pending: 1})
	}
	if err := im.copy("hf_message", messages, "seq", "id", "route", "lane", "created", "payload", "headers", "corr", "retry", "delay", "ttl", "okey"); err != nil {
		return err
	}
	if err := im.copy("hf_queue", queue, "seq", "lane", "due", "start", "expires", "failures", "tries", "cycle", "first_try", "blocked", "force", "given_up", "okey"); err != nil {
		return err
	}
	return im.copy("hf_final", final, "seq", "lane", "state", "settled", "expires", "failures", "tries", "cycle", "first_try", "force", "reason", "okey")
}

// keepable refuses texts that PostgreSQL cannot keep and that may not be changed.
func keepable(texts ...string) error {
	for _, t := range texts {
		if cleanText(t) != t {
			return fmt.Errorf("%w: PostgreSQL keeps no text with NUL bytes or that is no UTF-8, as %q is", move.ErrContent, t)
		}
	}
	return nil
}

// settled is when it became final; what does not know that became so before.
func (im *importing) settled(m *move.Message) int64 {
	if m.Settled == move.None {
		return im.base + m.Created
	}
	return im.at(m.Settled)
}

func countsOf(s holdfast.State) (c holdfast.LaneCounts) {
	switch s {
	case holdfast.Pending, holdfast.Claimed:
		c.Pending = 1
	case holdfast.Parked:
		c.Parked = 1
	case holdfast.Expired:
		c.Expired = 1
	case holdfast.Delivered, holdfast.Discarded:
	}
	return c
}

func nullNumber(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

func (im *importing) copy(table string, rows [][]any, columns ...string) error {
	if len(rows) == 0 {
		return nil
	}
	if _, err := im.tx.CopyFrom(im.ctx, pgx.Identifier{table}, columns, pgx.CopyFromRows(rows)); err != nil {
		return fmt.Errorf("write %s: %w", table, err)
	}
	return nil
}

func (im *importing) events(page *move.Page) error {
	rows := make([][]any, 0, len(page.Events))
	for i := range page.Events {
		e := &page.Events[i]
		rows = append(rows, []any{
			e.Seq, e.Message, int16(e.Kind), int16(e.State), im.base + e.At, e.Cycle, e.Attempt, int16(e.Outcome), e.Charged, e.Maybe, e.Took,
			nullText(e.Reason), nullText(e.Code), nullText(e.Error), nullText(e.Actor),
		})
	}
	return im.copy("hf_event", rows, "seq", "message", "kind", "state", "at", "cycle", "attempt", "outcome", "charged", "maybe", "took", "reason", "code", "error", "actor")
}

func (im *importing) inbox(page *move.Page) error {
	var rows, bodies [][]any
	for i := range page.Inbox {
		in := &page.Inbox[i]
		err := keepable(in.Source, in.Endpoint, in.Kind, in.Headers, in.CorrelationID)
		var source int32
		if err == nil {
			source, err = im.source(in.Source)
		}
		if err != nil {
			return fmt.Errorf("incoming message %s: %w", in.ID, err)
		}
		hash, payload := in.Hash, in.Payload
		if hash == nil {
			hash = []byte{}
		}
		if payload == nil {
			payload = []byte{}
		}
		rows = append(rows, []any{
			in.Seq, source, idBytes(in.ID), in.Endpoint, hash, in.Kept, im.at(in.Received), im.orNull(in.Processed), im.at(in.Expires), in.Response,
		})
		im.sums.inbox++
		if in.Kept {
			bodies = append(bodies, []any{in.Seq, in.Kind, payload, nullText(in.Headers), nullText(in.CorrelationID)})
			im.sums.kept++
		}
	}
	if err := im.copy("hf_inbox", rows, "seq", "source", "id", "endpoint", "hash", "kept", "received", "processed", "expires", "response"); err != nil {
		return err
	}
	return im.copy("hf_inbox_body", bodies, "seq", "kind", "payload", "headers", "corr")
}

// count writes the page's change of the counters, which no node knows yet.
func (im *importing) count() error {
	tx := &ownTx{counts: im.sums.lanes, inbox: im.sums.inbox, kept: im.sums.kept}
	c := tx.changes()
	if len(c.lanes) == 0 {
		return nil
	}
	_, err := im.tx.Exec(im.ctx, insertTally, int64(0), c.lanes, c.pending, c.parked, c.expired, c.inbox, c.kept)
	return err
}
