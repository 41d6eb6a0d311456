package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/rows"
)

// bundles is the work of one Bundle call.
type bundles struct {
	list         []bundled
	results      []holdfast.Result
	items, bytes int
}

// bundled is a bundle in normal form, with the column values of its messages.
type bundled struct {
	holdfast.Bundle

	entries []entry
	invalid error
}

// Bundle implements holdfast.Bundler.
func (db *DB) Bundle(ctx context.Context, list ...holdfast.Bundle) ([]holdfast.Result, error) {
	if len(list) == 0 {
		return nil, nil
	}
	if err := db.ready(); err != nil {
		return nil, fmt.Errorf("write bundles: %w", err)
	}
	k := &bundles{list: make([]bundled, len(list))}
	for i := range list {
		b := &k.list[i]
		b.invalid = b.prepare(&list[i], db.opts.Source)
		k.items += 2 + 2*len(b.entries)
		k.bytes += 512 + len(b.Payload) + 256*len(b.entries)
	}
	if err := db.writer.do(ctx, k); err != nil {
		return nil, fmt.Errorf("write bundles: %w", err)
	}
	return k.results, nil
}

// prepare checks and encodes.
func (b *bundled) prepare(given *holdfast.Bundle, source string) (err error) {
	if b.Bundle, err = given.Normalize(source); err != nil {
		return fmt.Errorf("write %s %s: %w", given.Kind, given.ID, err)
	}
	if err := cmp.Or(rows.CheckParent(b.Parent), rows.CheckBeside(b.Rows...)); err != nil {
		return fmt.Errorf("write %s %s: %w: %w", b.Kind, b.ID, holdfast.ErrInvalid, err)
	}
	b.entries = make([]entry, len(b.Messages))
	for i := range b.entries {
		e := &b.entries[i]
		e.m = b.Messages[i]
		if err := e.encode(); err != nil {
			return fmt.Errorf("write %s %s: %w", b.Kind, b.ID, err)
		}
	}
	return nil
}

func (k *bundles) size() (int, int) { return k.items, k.bytes }

func (k *bundles) apply(tx *writeTx) error {
	k.results = make([]holdfast.Result, len(k.list))
	for i := range k.list {
		b, r := &k.list[i], &k.results[i]
		if r.Err = b.invalid; r.Err != nil {
			continue
		}
		var err error
		if r.Receipt, err = tx.bundle(b); errors.Is(err, holdfast.ErrConflict) {
			r.Err = fmt.Errorf("write %s %s of %s: %w", b.Kind, b.ID, b.Source, err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// bundle writes a bundle with its messages and the rows beside them, or finds the bundle of the
// same name. ErrConflict means that nothing was written; only this caller gets it.
func (tx *writeTx) bundle(b *bundled) (holdfast.Receipt, error) {
	number, err := tx.nextMessage()
	if err != nil {
		return holdfast.Receipt{}, err
	}
	first := number
	if len(b.entries) == 0 {
		first = 0
	}
	if n, err := tx.exec(insertBundle, number, b.Kind, b.Source, idValue(b.ID), b.Hash[:], tx.now, first, payload(b.Payload)); err != nil {
		return holdfast.Receipt{}, err
	} else if n == 0 {
		return tx.knownBundle(b)
	}
	if len(b.entries) > 1 { // after the first insert it is too late: some messages would remain
		for i := range b.entries {
			if taken, err := tx.conn.one(findSeq, exists, b.entries[i].id); err != nil || taken {
				return holdfast.Receipt{}, cmp.Or(err, tx.takenID(number, b.entries[i].m.ID))
			}
		}
	}
	for i := range b.entries {
		e := &b.entries[i]
		e.bundle = number
		switch receipt, err := tx.insert(e); {
		case len(b.entries) == 1 && (receipt.Duplicate || errors.Is(err, holdfast.ErrConflict)):
			return holdfast.Receipt{}, tx.takenID(number, e.m.ID)
		case receipt.Duplicate || errors.Is(err, holdfast.ErrConflict): // the check above did not find it
			return holdfast.Receipt{}, fmt.Errorf("insert message %s: both new and known", e.m.ID)
		case err != nil:
			return holdfast.Receipt{}, err
		case i == 0 && tx.last.message != number:
			return holdfast.Receipt{}, fmt.Errorf("insert message %s: its number is %d, and %d that of its bundle", e.m.ID, tx.last.message, number)
		}
		if err := tx.writeBeside(rows.Beside(b.Rows[i], tx.last.message, number)); err != nil {
			return holdfast.Receipt{}, err
		}
	}
	if len(b.entries) == 0 { // no message gets its number
		tx.w.db.taken.Store(max(tx.w.db.taken.Load(), number))
	}
	if b.Parent != nil {
		if err := tx.put(rows.Parent(b.Parent, number)); err != nil {
			return holdfast.Receipt{}, err
		}
	}
	return holdfast.Receipt{ID: b.ID, State: holdfast.Pending}, nil
}

// nextMessage returns the number that the next message gets from insertRow.
func (tx *writeTx) nextMessage() (last int64, err error) {
	if last = tx.last.message; last == 0 {
		_, err = tx.conn.one(lastMessage, func(v []driver.Value) error {
			last = asInt(v[0])
			return nil
		})
	}
	return 1 + max(last, tx.w.db.taken.Load()), err
}

// takenID removes a bundle of which nothing else has been written.
func (tx *writeTx) takenID(number int64, id holdfast.ID) error {
	if _, err := tx.exec(purgeBundle, number); err != nil {
		return err
	}
	return fmt.Errorf("another message has the id %s: %w", id, holdfast.ErrConflict)
}

func (tx *writeTx) writeBeside(r rows.Row) error {
	if n, ok := r.(*rows.Notification); ok {
		_, err := tx.exec(insertNotification, copyValues(n, tx.now)...)
		return err
	}
	return tx.put(r)
}

// knownBundle finds the bundle that has the name. If its hash was lost with a damaged file, the
// name decides.
func (tx *writeTx) knownBundle(b *bundled) (r holdfast.Receipt, err error) {
	same := false
	if found, err := tx.conn.one(findBundle, func(v []driver.Value) error {
		hash := asBytes(v[0])
		same = len(hash) == 0 || bytes.Equal(hash, b.Hash[:])
		r = holdfast.Receipt{ID: b.ID, State: tx.w.db.lanes.shown(asInt(v[1]), holdfast.State(asInt(v[2]))), Duplicate: true}
		return nil
	}, idValue(b.ID), b.Kind, b.Source); err != nil || !found {
		return r, cmp.Or(err, errors.New("it is both new and known"))
	}
	if !same {
		return holdfast.Receipt{}, fmt.Errorf("another content was sent under its name: %w", holdfast.ErrConflict)
	}
	return r, nil
}
