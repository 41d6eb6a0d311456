package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/move"
)

// Target is a file into which everything of another store is copied.
type Target struct {
	contents

	db *DB
}

var _ move.Importer = (*Target)(nil)

// OpenTarget opens or makes the file at path for a move. ErrOwned says that a
// node has it.
func OpenTarget(ctx context.Context, path string, o Options) (*Target, error) {
	have, want, err := SchemaStatus(ctx, path)
	if err == nil && have != 0 && have != want {
		err = fmt.Errorf("open %s: %w: its schema is number %d, that of this release %d; name a new folder", path, move.ErrSchema, have, want)
	}
	if err != nil && !errors.Is(err, ErrLogWaits) {
		return nil, err
	}
	o.copying = true
	db, err := Open(ctx, path, o)
	if err != nil {
		return nil, err
	}
	return &Target{contents{db.readers, db.clock.now}, db}, nil
}

// Close gives the file up.
func (t *Target) Close() error { return t.db.Close() }

// Mark implements move.Exporter.
func (t *Target) Mark(ctx context.Context, m move.Moved) error {
	text, err := move.Text(m)
	if err != nil {
		return err
	}
	return t.note(ctx, metaMoved, text, nil)
}

// Holds implements move.Importer.
func (t *Target) Holds(ctx context.Context) (what string, err error) {
	err = t.handle.QueryRowContext(ctx, exportHolds).Scan(&what)
	return what, translate(err)
}

// Progress implements move.Importer.
func (t *Target) Progress(ctx context.Context) (*move.Progress, error) {
	text, err := t.meta(ctx, metaCopy)
	if err != nil {
		return nil, err
	}
	return move.ParseProgress(text)
}

// note writes a text of the file's own, in one transaction with work.
func (t *Target) note(ctx context.Context, key, text string, work func(tx *writeTx) error) error {
	return t.db.writer.do(ctx, workFunc(func(tx *writeTx) error {
		if work != nil {
			if err := work(tx); err != nil {
				return err
			}
		}
		_, err := tx.exec(setMeta, key, text)
		return err
	}))
}

func (t *Target) noteProgress(ctx context.Context, p move.Progress, work func(tx *writeTx) error) error {
	text, err := move.Text(p)
	if err != nil {
		return err
	}
	return t.note(ctx, metaCopy, text, work)
}

// Begin implements move.Importer.
func (t *Target) Begin(ctx context.Context, p move.Progress, _ move.Totals) error {
	return t.noteProgress(ctx, p, nil)
}

// End implements move.Importer.
func (t *Target) End(ctx context.Context, p move.Progress) error { return t.noteProgress(ctx, p, nil) }

// Write implements move.Importer.
func (t *Target) Write(ctx context.Context, page *move.Page, p move.Progress) error {
	return t.noteProgress(ctx, p, func(tx *writeTx) error {
		im := importing{tx, p.HereNow}
		if page.Settings != nil {
			if err := im.settings(page.Settings); err != nil {
				return err
			}
		}
		for i := range page.Messages {
			if err := im.message(&page.Messages[i]); err != nil {
				return fmt.Errorf("message %s: %w", page.Messages[i].ID, err)
			}
		}
		for i := range page.Events {
			if err := im.event(&page.Events[i]); err != nil {
				return fmt.Errorf("history entry %d: %w", page.Events[i].Seq, err)
			}
		}
		for i := range page.Inbox {
			if err := im.incoming(&page.Inbox[i]); err != nil {
				return fmt.Errorf("incoming message %s: %w", page.Inbox[i].ID, err)
			}
		}
		return nil
	})
}

// Counts implements move.Importer, from memory.
func (t *Target) Counts(ctx context.Context) (holdfast.Counts, error) {
	select {
	case <-t.db.background: // the inbox is counted
		return t.db.Counts(), t.db.Err()
	case <-ctx.Done():
		return holdfast.Counts{}, ctx.Err()
	}
}

// Place implements move.Importer.
func (t *Target) Place(ctx context.Context) error {
	x := exporting{ctx: ctx, db: t.handle}
	c, err := x.settings()
	if err != nil {
		return translate(err)
	}
	for _, l := range c.Lanes {
		k := &placing{destination: l.Destination}
		for !k.done {
			if err := t.db.writer.do(ctx, k); err != nil {
				return fmt.Errorf("lane %s: %w", l.Destination, err)
			}
			k.from = k.reached
		}
	}
	return nil
}

// placing is a page of the ordering keys of a lane.
type placing struct {
	destination   string
	from, reached string
	done          bool
}

func (k *placing) size() (int, int) { return freePage, 0 }

func (k *placing) apply(tx *writeTx) error {
	k.reached, k.done = k.from, true
	l, err := tx.lane(k.destination)
	if err != nil {
		return err
	}
	for range freePage {
		found, err := tx.conn.one(keyAfter, func(v []driver.Value) error {
			k.reached = asText(v[0])
			return nil
		}, l.id, k.reached)
		if err != nil || !found {
			return err
		}
		if err := tx.keyLeft(l, k.reached); err != nil {
			return err
		}
	}
	k.done = false
	return nil
}

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
	tx.after = append(tx.after, func() { tx.w.db.notify.Store(c.Notices) })
	_, err := tx.exec(setMeta, metaNotify, c.Notices)
	return err
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
		im.orNull(m.FirstTry), im.orNull(m.Settled), nullText(m.Reason), nullText(m.OrderingKey), asBit(m.Waits), asBit(m.Force))
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
