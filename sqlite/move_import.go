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
	return &Target{contents{db.readers, db.clock.now, db.clock.guard}, db}, nil
}

// Close gives the file up.
func (t *Target) Close() error { return t.db.Close() }

// Holds implements move.Importer.
func (t *Target) Holds(ctx context.Context) (what string, err error) {
	err = t.handle.QueryRowContext(ctx, exportHolds).Scan(&what)
	return what, translate(err)
}

// noteProgress writes how far the copy is, in one transaction with work.
func (t *Target) noteProgress(ctx context.Context, p move.Progress, work func(tx *writeTx) error) error {
	text, err := move.Text(p)
	if err != nil {
		return err
	}
	return t.db.writer.do(ctx, workFunc(func(tx *writeTx) error {
		if work != nil {
			if err := work(tx); err != nil {
				return err
			}
		}
		_, err := tx.exec(setMeta, metaCopy, text)
		return err
	}))
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
		for i := range page.Notifications {
			if err := im.notification(&page.Notifications[i]); err != nil {
				return fmt.Errorf("notification %s: %w", page.Notifications[i].ID, err)
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
		if err := tx.placeKey(l, k.reached); err != nil {
			return err
		}
	}
	k.done = false
	return nil
}
