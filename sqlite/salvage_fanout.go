package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/internal/sqlitefile"
	"github.com/holdfast-mq/holdfast/rows"
)

// An event is salvaged with its bundle, and then its deliveries: those that have ended, and those
// whose message is there. Nobody would ever end another one. An event whose own row is lost is gone,
// and its messages keep the payload as their own.

// publishedEvents salvages events and their deliveries.
func (s *salvage) publishedEvents(ctx context.Context) (err error) {
	events, deliveries := rows.Of((*rows.Event)(nil)), rows.Of((*rows.Delivery)(nil))
	s.eachOf(events.Name, len(events.Columns), func(r sqlitefile.Row) {
		row, ok := s.described(events, r)
		if e, is := row.(*rows.Event); ok && is && err == nil {
			err = s.add(ctx, events.Size(e), func(tx *writeTx) error { return s.insertEvent(tx, e) })
		}
	})
	s.eachOf(deliveries.Name, len(deliveries.Columns), func(r sqlitefile.Row) {
		row, ok := s.described(deliveries, r)
		if d, is := row.(*rows.Delivery); ok && is && err == nil {
			err = s.add(ctx, deliveries.Size(d), func(tx *writeTx) error { return s.insertDelivery(tx, d) })
		}
	})
	return err
}

func (s *salvage) insertEvent(tx *writeTx, e *rows.Event) error {
	tx.w.db.taken.Store(max(tx.w.db.taken.Load(), e.Seq))
	if err := s.keepBundle(tx, bundleOfEvent(e), true); err != nil {
		return err
	}
	return s.insertPlain(tx, e)
}

func (s *salvage) insertDelivery(tx *writeTx, d *rows.Delivery) error {
	var state, settled driver.Value
	if d.State != 0 {
		state, settled = d.State, int64(d.Settled)
	}
	var resends, request, actor driver.Value
	if d.Resends != 0 {
		resends, request, actor = d.Resends, d.Request, d.Actor
	}
	n, err := tx.exec(salvageDelivery, d.Seq, d.Event, d.Subscription, d.Version, d.Message, state, settled, resends, request, actor)
	tx.w.db.taken.Store(max(tx.w.db.taken.Load(), d.Seq))
	s.count(func(all *Damage) { all.Salvaged.plain(d.Table(), n) })
	if err != nil || n == 0 || d.Resends == 0 {
		return err
	}
	if known, ok := s.published(d.Seq); ok { // the name of a resend whose messages are purged
		err = s.keepBundle(tx, known, false)
	}
	return err
}

// published returns what an event says about the bundle of its message seq, or about that of a resend, if
// the event is found. With it the event itself is kept: the walk may not find it.
func (s *salvage) published(seq int64) (*rows.Bundle, bool) {
	d, ok := s.besides(&rows.Delivery{}, seq).(*rows.Delivery)
	if !ok {
		return nil, false
	}
	e, ok := s.besides(&rows.Event{}, cmp.Or(d.Resends, d.Event)).(*rows.Event)
	if !ok {
		return nil, false
	}
	if d.Resends != 0 {
		return &rows.Bundle{Seq: d.Event, Kind: fanout.ResendKind, Source: e.Source, ID: holdfast.ID(d.Request), Created: e.Received}, true
	}
	return bundleOfEvent(e), true
}

// besides finds a row of a described table by its number.
func (s *salvage) besides(like rows.Row, seq int64) rows.Row {
	t := rows.Of(like)
	r, ok := s.old.Find(s.roots[t.Name], seq)
	if !ok {
		return nil
	}
	row, _, ok := describedRow(t, r)
	if !ok {
		return nil
	}
	return row
}

func bundleOfEvent(e *rows.Event) *rows.Bundle {
	return &rows.Bundle{Seq: e.Seq, Kind: fanout.BundleKind, Source: e.Source, ID: holdfast.ID(e.ID), Created: e.Received}
}
