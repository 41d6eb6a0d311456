package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/rows"
	"github.com/holdfast-mq/holdfast/storecopy"
)

// Target is a file into which the content of another store is copied.
type Target struct {
	contents

	db *DB
}

var _ storecopy.Importer = (*Target)(nil)

// OpenTarget opens or makes the file at path for a move. ErrOwned means that a node owns it.
func OpenTarget(ctx context.Context, path string, o Options) (*Target, error) {
	have, want, err := SchemaStatus(ctx, path)
	if err == nil && have != 0 && have != want {
		err = fmt.Errorf("open %s: %w: its schema is number %d, that of this release %d; name a new folder", path, storecopy.ErrSchema, have, want)
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

// Close releases the file.
func (t *Target) Close() error { return t.db.Close() }

// noteProgress writes how far the copy is, in one transaction with work.
func (t *Target) noteProgress(ctx context.Context, p storecopy.Progress, work func(tx *writeTx) error) error {
	text, err := storecopy.Text(p)
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

// Begin implements storecopy.Importer.
func (t *Target) Begin(ctx context.Context, p storecopy.Progress, _ storecopy.Totals) error {
	return t.noteProgress(ctx, p, nil)
}

// End implements storecopy.Importer.
func (t *Target) End(ctx context.Context, p storecopy.Progress) error {
	return t.noteProgress(ctx, p, nil)
}

// Write implements storecopy.Importer.
func (t *Target) Write(ctx context.Context, page []rows.Row, p storecopy.Progress) error {
	return t.noteProgress(ctx, p, func(tx *writeTx) error {
		im := importing{tx: tx, base: p.HereNow}
		for _, r := range page {
			if err := im.row(r); errors.Is(err, rows.ErrNotPlain) {
				return err
			} else if err != nil {
				return fmt.Errorf("%s %s: %w", r.Table(), rows.Of(r).Place(r), err)
			}
		}
		return nil
	})
}

// Counts implements storecopy.Importer, from memory.
func (t *Target) Counts(ctx context.Context) (holdfast.Counts, error) {
	select {
	case <-t.db.background: // when the inbox has been counted
		return t.db.Counts(), t.db.Err()
	case <-ctx.Done():
		return holdfast.Counts{}, ctx.Err()
	}
}

// Place implements storecopy.Importer.
func (t *Target) Place(ctx context.Context) error {
	var lanes []string
	err := eachRowOf(ctx, t.handle, rows.Range{Table: rows.Of((*rows.Lane)(nil))}, func(r rows.Row) error {
		lanes = append(lanes, r.(*rows.Lane).Destination)
		return nil
	})
	if err != nil {
		return translate(err)
	}
	for _, l := range lanes {
		k := &placing{destination: l}
		for !k.done {
			if err := t.db.writer.do(ctx, k); err != nil {
				return fmt.Errorf("lane %s: %w", l, err)
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
