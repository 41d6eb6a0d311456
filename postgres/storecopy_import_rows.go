package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/belief"
	"github.com/holdfast-mq/holdfast/rows"
	"github.com/holdfast-mq/holdfast/storecopy"
)

// importing writes one page into the tables.
type importing struct {
	t    *Target
	tx   pgx.Tx
	ctx  context.Context //nolint:containedctx // of this one page
	base int64
	sums sums
}

// at returns an instant, or never.
func (im *importing) at(distance rows.Instant) int64 { return distance.From(im.base, never) }

// orNull returns an instant, or NULL.
func (im *importing) orNull(distance rows.Instant) *int64 {
	if distance == rows.None {
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

// page writes rows of one table. A row that goes into one table unchanged is written by its
// description.
func (im *importing) page(page []rows.Row) error {
	if len(page) == 0 {
		return nil
	}
	switch t := rows.Of(page[0]); page[0].(type) {
	case *rows.Settings:
		return im.settings(as[*rows.Settings](page)[0])
	case *rows.Message:
		return im.messages(as[*rows.Message](page))
	case *rows.Entry:
		return im.events(as[*rows.Entry](page))
	case *rows.Incoming:
		return im.inbox(as[*rows.Incoming](page))
	case *rows.Notification:
		return im.notifications(as[*rows.Notification](page))
	default:
		if err := rows.CheckPlain(page...); err != nil {
			return err
		}
		for _, r := range page {
			if err := keepable(r); err != nil {
				return fmt.Errorf("%s: %w", t.Name, err)
			}
		}
		if _, err := im.tx.Exec(im.ctx, rowStatements()[t].put, columnArrays(t, im.base, page)...); err != nil {
			return fmt.Errorf("write %s: %w", t.Name, err)
		}
		return nil
	}
}

// as converts a page whose rows all have the type T.
func as[T rows.Row](page []rows.Row) []T {
	list := make([]T, len(page))
	for i, r := range page {
		list[i] = r.(T) //nolint:forcetypeassert // the caller has checked the type
	}
	return list
}

func (im *importing) settings(s *rows.Settings) error {
	if _, err := im.tx.Exec(im.ctx, setNotifyMask, fmt.Sprint(s.Notices)); err != nil {
		return err
	}
	if err := im.leaps(s.Leaps); err != nil {
		return fmt.Errorf("leaps of the clock: %w", err)
	}
	if s.Book == 0 {
		return nil
	}
	_, err := im.tx.Exec(im.ctx, importBook, s.Book)
	return err
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

func (im *importing) route(m *rows.Message) (r route, err error) {
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

// messages writes the accepted messages and their states.
func (im *importing) messages(page []*rows.Message) error {
	var messages, queue, final [][]any
	for _, m := range page {
		err := keepable(m)
		var r route
		if err == nil {
			r, err = im.route(m)
		}
		if err != nil {
			return fmt.Errorf("message %s: %w", m.ID, err)
		}
		created, key := im.at(m.Created), nullText(m.OrderingKey)
		start := created
		if m.Start != rows.None {
			start = im.at(m.Start)
		}
		payload := m.Payload
		if payload == nil {
			payload = []byte{}
		}
		messages = append(messages, []any{
			m.Seq, idBytes(m.ID), r.route, r.lane, created, payload, nullText(m.Headers), nullText(m.CorrelationID), nullText(m.Retry), start - created, nullNumber(m.TTL), key, nullNumber(m.Bundle),
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
	if err := im.copy("hf_message", messages, "seq", "id", "route", "lane", "created", "payload", "headers", "corr", "retry", "delay", "ttl", "okey", "bundle"); err != nil {
		return err
	}
	if err := im.copy("hf_queue", queue, "seq", "lane", "due", "start", "expires", "failures", "tries", "cycle", "first_try", "blocked", "force", "given_up", "okey"); err != nil {
		return err
	}
	return im.copy("hf_final", final, "seq", "lane", "state", "settled", "expires", "failures", "tries", "cycle", "first_try", "force", "reason", "okey")
}

// keepable refuses a text that PostgreSQL cannot store, if the text must not be changed.
func keepable(r rows.Row) error {
	t := rows.Of(r)
	for i, f := range t.Fields(r) {
		if s, ok := f.(*string); ok && t.Columns[i].Exact && cleanText(*s) != *s {
			return fmt.Errorf("%w: PostgreSQL cannot store a text with NUL bytes or invalid UTF-8, such as %q", storecopy.ErrContent, *s)
		}
	}
	return nil
}

// settled returns when the message became final. If that is not known, it is the time of creation.
func (im *importing) settled(m *rows.Message) int64 {
	if m.Settled == rows.None {
		return im.at(m.Created)
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

func (im *importing) copy(table string, list [][]any, columns ...string) error {
	if len(list) == 0 {
		return nil
	}
	if _, err := im.tx.CopyFrom(im.ctx, pgx.Identifier{table}, columns, pgx.CopyFromRows(list)); err != nil {
		return fmt.Errorf("write %s: %w", table, err)
	}
	return nil
}

func (im *importing) events(page []*rows.Entry) error {
	list := make([][]any, 0, len(page))
	for _, e := range page {
		list = append(list, []any{
			e.Seq, e.Message, int16(e.Kind), int16(e.State), im.at(e.At), e.Cycle, e.Attempt, int16(e.Outcome), e.Charged, e.Maybe, e.Took,
			nullText(e.Reason), nullText(e.Code), nullText(e.Error), nullText(e.Actor),
		})
	}
	return im.copy("hf_entry", list, "seq", "message", "kind", "state", "at", "cycle", "attempt", "outcome", "charged", "maybe", "took", "reason", "code", "error", "actor")
}

func (im *importing) inbox(page []*rows.Incoming) error {
	var list, bodies [][]any
	for _, in := range page {
		err := keepable(in)
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
		list = append(list, []any{
			in.Seq, source, idBytes(in.ID), in.Endpoint, hash, in.Kept, im.at(in.Received), im.orNull(in.Processed), im.at(in.Expires), in.Response,
		})
		im.sums.inbox++
		if in.Kept {
			bodies = append(bodies, []any{in.Seq, in.Kind, payload, nullText(in.Headers), nullText(in.CorrelationID)})
			im.sums.kept++
		}
	}
	if err := im.copy("hf_inbox", list, "seq", "source", "id", "endpoint", "hash", "kept", "received", "processed", "expires", "response"); err != nil {
		return err
	}
	return im.copy("hf_inbox_body", bodies, "seq", "kind", "payload", "headers", "corr")
}

// count writes the page's changes of the counters. No node counts them in memory.
func (im *importing) count() error {
	tx := &ownTx{counts: im.sums.lanes, inbox: im.sums.inbox, kept: im.sums.kept}
	c := tx.changes()
	if len(c.lanes) == 0 {
		return nil
	}
	_, err := im.tx.Exec(im.ctx, insertTally, int64(0), c.lanes, c.pending, c.parked, c.expired, c.inbox, c.kept)
	return err
}

func (im *importing) notifications(page []*rows.Notification) error {
	var list, ends [][]any
	var seqs, delivered []int64
	var sites []string
	for _, n := range page {
		row := []any{n.Seq, n.Bundle, n.Copy, idBytes(n.ID), idBytes(n.Message)}
		for _, text := range noteTexts(n) {
			row = append(row, text)
		}
		list = append(list, append(row, noteEnqueued(n), im.at(n.Created)))
		switch {
		case n.Purged:
			ends = append(ends, []any{
				n.Seq, n.Site, n.State, im.at(n.Settled), n.Failures, n.Tries, n.Cycle, nullText(n.Reason), nullText(n.LastError), im.orNull(n.Tried),
			})
		case n.Delivered != rows.None:
			seqs, sites, delivered = append(seqs, n.Seq), append(sites, n.Site), append(delivered, im.at(n.Delivered))
		}
	}
	if err := im.copy("hf_notification", list, append(strings.Split(notificationRow, ", "), "created")...); err != nil {
		return err
	}
	if err := im.copy("hf_notification_end", ends, "seq", "site", "state", "settled", "failures", "tries", "cycle", "reason", "last_error", "tried"); err != nil {
		return err
	}
	if len(seqs) == 0 {
		return nil
	}
	_, err := im.tx.Exec(im.ctx, importDelivered, seqs, sites, delivered)
	return err
}
