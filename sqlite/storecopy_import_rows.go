package sqlite

import (
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/rows"
)

// importing is one page that is being written into the file.
type importing struct {
	tx   *writeTx
	base int64

	bundle  int64  // of the last message
	payload []byte // of that bundle
}

var errThere = errors.New("it is in the target already")

// at returns the instant at a distance, or never.
func (im *importing) at(distance rows.Instant) int64 { return distance.From(im.base, never) }

func (im *importing) orNull(distance rows.Instant) driver.Value { return nullInstant(im.at(distance)) }

// row writes one row. A row of a single table is written as its description says.
func (im *importing) row(r rows.Row) error {
	switch r := r.(type) {
	case *rows.Settings:
		return im.settings(r)
	case *rows.Message:
		return im.message(r)
	case *rows.Entry:
		return im.event(r)
	case *rows.Incoming:
		return im.incoming(r)
	case *rows.Notification:
		return im.notification(r)
	case *rows.Lane:
		if err := im.lane(r); err != nil { // memory has to know the lane's number
			return err
		}
	}
	_, err := im.tx.write(im.base, replaceRow, []rows.Row{r})
	return err
}

func (im *importing) lane(r *rows.Lane) error {
	l, err := im.tx.lane(r.Destination)
	if err != nil || !r.Strict {
		return err
	}
	return im.tx.setOrder(l, orderStrict)
}

func (im *importing) settings(s *rows.Settings) error {
	tx := im.tx
	tx.w.db.clock.guard.Add(im.base, s.Leaps...)
	tx.after = append(tx.after, func() { tx.w.db.notify.Store(s.Notices) })
	if _, err := tx.exec(setMeta, metaNotify, s.Notices); err != nil || s.Book == 0 {
		return err
	}
	_, err := tx.exec(setMeta, metaBook, s.Book)
	return err
}

func (im *importing) message(m *rows.Message) error {
	tx := im.tx
	r, err := tx.route(&holdfast.Message{Source: m.Source, Destination: m.Destination, Endpoint: m.Endpoint, Kind: holdfast.Kind(m.Kind)})
	if err != nil {
		return err
	}
	created, expires := im.at(m.Created), im.at(m.Expires)
	due := created // nobody reads the due time of a final message
	if m.State == holdfast.Pending && m.Waits {
		due = expires
	} else if m.State == holdfast.Pending {
		due = im.at(m.Due)
	}
	seq, err := tx.conn.insert(salvageMessage, m.Seq, idValue(m.ID), r.route, r.lane.id, int64(m.State), due, created, nullInstant(expires), m.Failures, m.Tries, m.Cycle,
		im.orNull(m.FirstTry), im.orNull(m.Settled), nullText(m.Reason), nullText(m.OrderingKey), asBit(m.Waits), asBit(m.Force), asBit(m.GivenUp))
	if err != nil {
		return err
	}
	if seq == 0 {
		return errThere
	}
	var ttl, hash driver.Value
	if m.TTL > 0 {
		ttl = m.TTL
	}
	if !m.Broken {
		content, err := im.content(m)
		if err != nil {
			return err
		}
		hash = contentOf(m, content)
	}
	if _, err := tx.exec(salvageBody, m.Seq, m.Bundle, payload(m.Payload), nullText(m.Headers), nullText(m.CorrelationID), nullText(m.Retry), ttl, im.orNull(m.Start), hash); err != nil {
		return err
	}
	tx.moves = append(tx.moves, change{r.lane, none, m.State})
	if m.State == holdfast.Pending || m.State == holdfast.Parked {
		tx.expires(expires)
	}
	return nil
}

// content returns the payload of a message, or of its bundle if it has one.
func (im *importing) content(m *rows.Message) ([]byte, error) {
	if m.Bundle == 0 {
		return m.Payload, nil
	}
	if m.Bundle != im.bundle {
		found, err := im.tx.conn.one(bundlePayload, func(v []driver.Value) error {
			im.bundle, im.payload = m.Bundle, payload(v[0])
			return nil
		}, m.Bundle)
		if err == nil && !found {
			err = fmt.Errorf("there is no bundle %d, which has the payload of %s", m.Bundle, m.ID)
		}
		if err != nil {
			return nil, err
		}
	}
	return im.payload, nil
}

func (im *importing) event(e *rows.Entry) error {
	n, err := im.tx.exec(salvageEvent, e.Seq, e.Message, e.Kind, e.State, im.at(e.At), e.Cycle, e.Attempt, e.Outcome, asBit(e.Charged), asBit(e.Maybe), e.Took,
		nullText(e.Reason), nullText(e.Code), nullText(e.Error), nullText(e.Actor), nil, nil, nil)
	if err == nil && n == 0 {
		err = errThere
	}
	return err
}

func (im *importing) incoming(in *rows.Incoming) error {
	tx := im.tx
	source, err := tx.source(in.Source)
	if err != nil {
		return err
	}
	hash := in.Hash
	if hash == nil {
		hash = []byte{}
	}
	seq, err := tx.conn.insert(salvageInbox, in.Seq, source, idValue(in.ID), in.Endpoint, hash, asBit(in.Kept), im.at(in.Received), im.orNull(in.Processed), im.at(in.Expires),
		nullBytes(in.Response), answerHash(in.ID, in.Response))
	if err != nil {
		return err
	}
	if seq == 0 {
		return errThere
	}
	tx.inboxed++
	if !in.Kept {
		return nil
	}
	tx.kept++
	_, err = tx.exec(insertInboxBody, in.Seq, in.Kind, payload(in.Payload), nullText(in.Headers), nullText(in.CorrelationID), keptContentOf(in))
	return err
}

func (im *importing) notification(n *rows.Notification) error {
	tx := im.tx
	args := append(copyValues(n, im.at(n.Created)), im.orNull(n.Delivered))
	if n.Purged {
		args = append(args, n.State, im.orNull(n.Settled), n.Failures, n.Tries, n.Cycle, nullText(n.Reason), nullText(n.LastError), im.orNull(n.Tried))
	} else {
		args = append(args, nil, nil, nil, nil, nil, nil, nil, nil)
	}
	seq, err := tx.conn.insert(salvageNotification, args...)
	if err != nil {
		return err
	}
	if seq == 0 {
		return errThere
	}
	return nil
}
