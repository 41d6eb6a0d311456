package nodestore

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/internal/belief"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/rows"
)

// A store writes events with their bundles, and the state of a delivery when it purges the message. An event
// goes once all its messages have; the newest one stays, so that no number is used twice.
const (
	eventColumns    = ` seq, id, source, topic, type, subject, at, attributes, media, actor, matched, version, received FROM hf_event `
	events          = `SELECT` + eventColumns + `WHERE seq < $1 ORDER BY seq DESC LIMIT $2`
	eventsOf        = `SELECT` + eventColumns + `WHERE id = $1 ORDER BY source`
	eventsUnder     = `SELECT` + eventColumns + `WHERE topic = $3 AND seq < $1 ORDER BY seq DESC LIMIT $2`
	eventData       = `SELECT payload FROM hf_bundle WHERE seq = $1`
	deliveryColumns = ` seq, subscription, version, message, coalesce(state, 0) AS state, coalesce(settled, 0) AS settled, coalesce(request, '') AS request, coalesce(actor, '') AS actor FROM hf_delivery `
	deliveriesOf    = `SELECT` + deliveryColumns + `WHERE event = $1 AND seq > $2 UNION ALL SELECT` + deliveryColumns + `WHERE resends = $1 AND seq > $2 ORDER BY seq LIMIT $3`
	deliveriesTo    = `SELECT` + deliveryColumns + `WHERE event = $1 AND subscription >= $2 AND subscription <= $3 ORDER BY subscription, seq`

	oldestEvents = `SELECT e.seq, e.received, e.matched, coalesce((SELECT 1 FROM hf_delivery AS d WHERE d.event = e.seq AND d.state IS NULL LIMIT 1),
			(SELECT 1 FROM hf_delivery AS d WHERE d.resends = e.seq AND d.state IS NULL LIMIT 1), 0)
		FROM hf_event AS e WHERE e.seq > $1 AND e.seq < (SELECT max(seq) FROM hf_event) ORDER BY e.seq LIMIT 500`
	dropDeliveries   = `DELETE FROM hf_delivery WHERE seq IN (SELECT seq FROM hf_delivery WHERE event >= $1 AND event <= $2 ORDER BY event, seq LIMIT 2000)`
	dropEvents       = `DELETE FROM hf_event WHERE seq >= $1 AND seq <= $2`
	dropEventBundles = `DELETE FROM hf_bundle WHERE seq >= $1 AND seq <= $2 AND kind = '` + fanout.BundleKind + `'`

	// A resend that came while its event went is kept until its messages are purged.
	dropResends = `DELETE FROM hf_bundle WHERE kind = '` + fanout.ResendKind + `'
		AND seq IN (SELECT d.event FROM hf_delivery AS d WHERE d.resends <= $1 AND NOT EXISTS (SELECT 1 FROM hf_event AS e WHERE e.seq = d.resends))
		AND NOT EXISTS (SELECT 1 FROM hf_delivery AS w WHERE w.event = hf_bundle.seq AND w.state IS NULL)`
	dropResent = `DELETE FROM hf_delivery WHERE resends <= $1 AND state IS NOT NULL
		AND NOT EXISTS (SELECT 1 FROM hf_event AS e WHERE e.seq = resends) AND NOT EXISTS (SELECT 1 FROM hf_bundle AS b WHERE b.seq = event)`
)

// Events implements fanout.Store.
func (f *Fanout) Events(ctx context.Context, q fanout.Query) ([]fanout.Stored, error) {
	before := q.Before
	if before <= 0 {
		before = math.MaxInt64
	}
	if q.Topic != "" {
		return f.events(ctx, eventsUnder, before, int64(q.Limit), q.Topic)
	}
	return f.events(ctx, events, before, int64(q.Limit))
}

// EventsOf implements fanout.Store.
func (f *Fanout) EventsOf(ctx context.Context, id holdfast.ID) ([]fanout.Stored, error) {
	return f.events(ctx, eventsOf, string(id))
}

func (f *Fanout) events(ctx context.Context, sql string, args ...any) (list []fanout.Stored, err error) {
	err = f.db.Read(ctx, sql, args, func(scan side.Scan) error {
		var e fanout.Stored
		var id, attributes string
		var at, matched, received int64
		if err := scan(&e.Seq, &id, &e.Source, &e.Topic, &e.Type, &e.Subject, &at, &attributes, &e.ContentType, &e.Actor, &matched, &e.Version, &received); err != nil {
			return err
		}
		e.ID, e.Time, e.Matched, e.Received = holdfast.ID(id), time.UnixMicro(at).UTC(), int(matched), f.db.Time(rows.Instant(received))
		if json.Unmarshal([]byte(attributes), &e.Attributes) != nil {
			e.Attributes = nil // lost with a damaged file; the event is shown without them
		}
		list = append(list, e)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	return list, nil
}

// Data implements fanout.Store.
func (f *Fanout) Data(ctx context.Context, event int64) (data []byte, err error) {
	err = f.db.Read(ctx, eventData, []any{event}, func(scan side.Scan) error { return scan(&data) })
	if err != nil {
		return nil, fmt.Errorf("read the data of event %d: %w", event, err)
	}
	return data, nil
}

// Deliveries implements fanout.Store.
func (f *Fanout) Deliveries(ctx context.Context, event, after int64, limit int) ([]fanout.Delivery, error) {
	return f.deliveries(ctx, deliveriesOf, event, after, int64(limit))
}

// DeliveriesTo implements fanout.Store.
func (f *Fanout) DeliveriesTo(ctx context.Context, event int64, first, last string) ([]fanout.Delivery, error) {
	return f.deliveries(ctx, deliveriesTo, event, first, last)
}

func (f *Fanout) deliveries(ctx context.Context, sql string, args ...any) (list []fanout.Delivery, err error) {
	err = f.db.Read(ctx, sql, args, func(scan side.Scan) error {
		var d fanout.Delivery
		var id, request string
		var state, settled int64
		if err := scan(&d.Seq, &d.Subscription, &d.Version, &id, &state, &settled, &request, &d.Actor); err != nil {
			return err
		}
		d.Request = holdfast.ID(request)
		if d.Message = holdfast.ID(id); state != 0 {
			d.Purged, d.State, d.Settled = true, holdfast.State(state), f.db.Time(rows.Instant(settled))
		}
		list = append(list, d)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the deliveries of event %d: %w", args[0], err)
	}
	return list, nil
}

// PurgeEvents implements fanout.Store.
func (f *Fanout) PurgeEvents(ctx context.Context, keep time.Duration, after int64) (purged int, next int64, err error) {
	clock, err := f.db.Clock(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("purge events: %w", err)
	}
	var spans []span
	over, joined, read := true, false, 0
	err = f.db.Read(ctx, oldestEvents, []any{after}, func(scan side.Scan) error {
		var seq, received, matched, waits int64
		if err := scan(&seq, &received, &matched, &waits); err != nil {
			return err
		}
		read++
		if over = over && clock.Judge(rows.Instant(received+rows.Micros(keep)), keep) == belief.Over; !over {
			return nil // those that follow are younger
		}
		switch next = seq; {
		case waits != 0:
			joined = false
			return nil
		case !joined:
			spans, joined = append(spans, span{first: seq}), true
		}
		spans[len(spans)-1].add(seq, matched)
		return nil
	})
	for _, s := range spans {
		if err == nil {
			err = f.dropEvents(ctx, &s)
		}
		if err == nil {
			purged += s.n
		}
	}
	if err != nil {
		return purged, 0, fmt.Errorf("purge events: %w", err)
	}
	if !over || read < eventsAtOnce {
		next = 0
	}
	return purged, next, nil
}

const (
	eventsAtOnce     = 500  // that oldestEvents returns
	deliveriesAtOnce = 2000 // that dropDeliveries deletes
)

// span is events that go together.
type span struct {
	first, last int64
	n           int // events
	matched     int // their deliveries, at first
}

func (s *span) add(event, matched int64) {
	s.last, s.n, s.matched = event, s.n+1, s.matched+int(matched)
}

// dropEvents deletes the events of a span: their deliveries piece by piece, so that others may write in
// between, and the events with the last ones.
func (f *Fanout) dropEvents(ctx context.Context, s *span) (err error) {
	for more := true; more && err == nil; {
		err = f.db.Change(ctx, side.Cost{Rows: min(s.matched, deliveriesAtOnce) + 2*s.n}, func(tx side.Tx) error {
			n, err := tx.Exec(dropDeliveries, s.first, s.last)
			if more = n == deliveriesAtOnce; err != nil || more {
				return err
			}
			for _, sql := range []string{dropEvents, dropEventBundles} {
				if _, err := tx.Exec(sql, s.first, s.last); err != nil {
					return err
				}
			}
			for _, sql := range []string{dropResends, dropResent} {
				if _, err := tx.Exec(sql, s.last); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return err
}
