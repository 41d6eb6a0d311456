package sqlite

import (
	"database/sql/driver"
	"errors"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/move"
)

// importing is one page on its way into the file.
type importing struct {
	tx   *writeTx
	base int64
}

var errThere = errors.New("it is in the target already")

// at is an instant, or never.
func (im *importing) at(distance int64) int64 { return move.Instant(distance, im.base, never) }

func (im *importing) orNull(distance int64) driver.Value { return nullInstant(im.at(distance)) }

func (im *importing) settings(c *move.Config) error {
	tx := im.tx
	for _, old := range c.Lanes {
		l, err := tx.lane(old.Destination)
		if err != nil {
			return err
		}
		order := orderLoose
		if old.Strict {
			order = orderStrict
		}
		if err := tx.setOrder(l, order); err != nil {
			return err
		}
		if _, err := tx.exec(restoreDecision, l.id, old.Paused, im.orNull(old.Decided), nullText(old.DecidedBy)); err != nil {
			return err
		}
		if old.Fault == "" {
			continue
		}
		if _, err := tx.exec(setLaneFault, l.id, old.Fault, im.at(old.FaultSince)); err != nil {
			return err
		}
	}
	for _, t := range c.Tokens {
		if _, err := tx.exec(salvageAccess, t.Name, t.Role, t.Hash, im.at(t.Created), im.orNull(t.Used)); err != nil {
			return err
		}
	}
	for _, s := range c.Sites {
		if _, err := tx.exec(writeSite, s.Name, im.at(s.Created), nullBytes(s.Token), im.orNull(s.TokenUntil), nullBytes(s.Credential), nullBytes(s.Former),
			im.orNull(s.FormerUntil), im.orNull(s.Enrolled), im.orNull(s.Seen), nullText(s.Version), im.orNull(s.Revoked)); err != nil {
			return err
		}
	}
	tx.w.db.clock.guard.Add(im.base, c.Leaps...)
	tx.after = append(tx.after, func() { tx.w.db.notify.Store(c.Notices) })
	if _, err := tx.exec(setMeta, metaNotify, c.Notices); err != nil {
		return err
	}
	return im.book(c)
}

func (im *importing) message(m *move.Message) error {
	tx := im.tx
	r, err := tx.route(&holdfast.Message{Source: m.Source, Destination: m.Destination, Endpoint: m.Endpoint, Kind: holdfast.Kind(m.Kind)})
	if err != nil {
		return err
	}
	created, expires := im.at(m.Created), im.at(m.Expires)
	due := created // nobody asks for that of a final one
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
		hash = contentOf(m)
	}
	if _, err := tx.exec(salvageBody, m.Seq, payload(m.Payload), nullText(m.Headers), nullText(m.CorrelationID), nullText(m.Retry), ttl, im.orNull(m.Start), hash); err != nil {
		return err
	}
	tx.moves = append(tx.moves, change{r.lane, none, m.State})
	if m.State == holdfast.Pending || m.State == holdfast.Parked {
		tx.expires(expires)
	}
	return nil
}

func (im *importing) event(e *move.Event) error {
	n, err := im.tx.exec(salvageEvent, e.Seq, e.Message, e.Kind, e.State, im.base+e.At, e.Cycle, e.Attempt, e.Outcome, asBit(e.Charged), asBit(e.Maybe), e.Took,
		nullText(e.Reason), nullText(e.Code), nullText(e.Error), nullText(e.Actor))
	if err == nil && n == 0 {
		err = errThere
	}
	return err
}

func (im *importing) incoming(in *move.Incoming) error {
	tx := im.tx
	source, err := tx.source(in.Source)
	if err != nil {
		return err
	}
	hash := in.Hash
	if hash == nil {
		hash = []byte{}
	}
	seq, err := tx.conn.insert(salvageInbox, in.Seq, source, idValue(in.ID), in.Endpoint, hash, asBit(in.Kept), im.at(in.Received), im.orNull(in.Processed), im.at(in.Expires), nullBytes(in.Response))
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
