package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/rows"
)

// bookTries bounds how often the book may change while it is read.
const bookTries = 20

// Book implements notify.Store.
func (db *DB) Book(ctx context.Context) (notify.Book, error) {
	for range bookTries {
		b, same, err := db.readBook(ctx)
		if err != nil {
			return notify.Book{}, fmt.Errorf("read channels and lists: %w", err)
		}
		if same {
			return b, nil
		}
	}
	return notify.Book{}, fmt.Errorf("read channels and lists: they change all the time: %w", holdfast.ErrUnavailable)
}

// readBook reads it in parts. Whatever changes it changes its version: what has
// the same before and after is of one moment.
func (db *DB) readBook(ctx context.Context) (b notify.Book, same bool, err error) {
	b = notify.Book{Channels: map[string]notify.Channel{}, Lists: map[string]notify.List{}}
	if b.Version, err = db.BookVersion(ctx); err != nil {
		return b, false, err
	}
	for _, t := range notify.BookTables() {
		if err := db.eachRowOf(ctx, rows.Range{Table: t}, func(r rows.Row) error { return b.Add(r, db.clock.wall) }); err != nil {
			return b, false, err
		}
	}
	after, err := db.BookVersion(ctx)
	return b, after == b.Version, err
}

// BookVersion implements notify.Store.
func (db *DB) BookVersion(ctx context.Context) (version int64, err error) {
	if err := db.read(ctx, bookVersion, nil, func(found pgx.Rows) error { return found.Scan(&version) }); err != nil {
		return 0, fmt.Errorf("read version of channels and lists: %w", err)
	}
	return version, nil
}

// bookChange says what a change of the book expects.
type bookChange struct {
	present string // statement
	name    string
	seen    int64 // zero: there was none
	end     bool  // there must be one
	kind    holdfast.EntryKind
	actor   string
}

// changeBook runs statements if what they change is what the caller has seen.
// The version goes first: its row is locked, so that of all nodes only one
// looks and changes at a time.
func (db *DB) changeBook(ctx context.Context, k bookChange, change func(tx *ownTx) error) error {
	if err := db.usable(ctx); err != nil {
		return err
	}
	return db.unbound(ctx, func(tx *ownTx) error {
		if err := tx.exec(bumpBook); err != nil {
			return err
		}
		found, present := false, int64(0)
		err := tx.query(k.present, []any{cleanText(k.name)}, func(row pgx.Rows) error {
			found = true
			return row.Scan(&present)
		})
		if err == nil {
			err = notify.Seen(found, present, k.seen, k.end)
		}
		if err != nil {
			return err
		}
		tx.note(&holdfast.Entry{Kind: k.kind, Subject: k.name, Actor: k.actor})
		return change(tx)
	})
}

// PutChannel implements notify.Store.
func (db *DB) PutChannel(ctx context.Context, c notify.Channel, actor string) error {
	err := c.Validate()
	var r *rows.Channel
	if err == nil {
		r, err = notify.ChannelRow(&c)
	}
	if err == nil {
		err = db.changeBook(ctx, bookChange{present: channelVersion, name: c.Name, seen: c.Version, kind: holdfast.ChannelPut, actor: actor}, func(tx *ownTx) error { return tx.put(r) })
	}
	if err != nil {
		return fmt.Errorf("put channel %q: %w", c.Name, err)
	}
	return nil
}

// DeleteChannel implements notify.Store.
func (db *DB) DeleteChannel(ctx context.Context, name string, version int64, actor string) error {
	if err := db.changeBook(ctx, bookChange{present: channelVersion, name: name, seen: version, end: true, kind: holdfast.ChannelRemoved, actor: actor}, func(tx *ownTx) error {
		return tx.exec(dropChannel, cleanText(name))
	}); err != nil {
		return fmt.Errorf("delete channel %q: %w", name, err)
	}
	return nil
}

// PutList implements notify.Store.
func (db *DB) PutList(ctx context.Context, l notify.List, actor string) error {
	err := l.Validate()
	if err == nil {
		err = db.changeBook(ctx, bookChange{present: listVersion, name: l.Name, seen: l.Version, kind: holdfast.ListPut, actor: actor}, func(tx *ownTx) error {
			if err := tx.exec(dropRecipients, cleanText(l.Name)); err != nil {
				return err
			}
			return tx.put(notify.ListRows(&l)...)
		})
	}
	if err != nil {
		return fmt.Errorf("put list %q: %w", l.Name, err)
	}
	return nil
}

// DeleteList implements notify.Store.
func (db *DB) DeleteList(ctx context.Context, name string, version int64, actor string) error {
	err := db.changeBook(ctx, bookChange{present: listVersion, name: name, seen: version, end: true, kind: holdfast.ListRemoved, actor: actor}, func(tx *ownTx) error {
		if err := tx.exec(dropList, cleanText(name)); err != nil {
			return err
		}
		return tx.exec(dropRecipients, cleanText(name))
	})
	if err != nil {
		return fmt.Errorf("delete list %q: %w", name, err)
	}
	return nil
}
