package nodestore

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/rows"
)

const (
	bookVersion = `SELECT CAST(value AS bigint) FROM hf_meta WHERE key = 'book'`
	bumpBook    = `INSERT INTO hf_meta (key, value) VALUES ('book', 1) ON CONFLICT (key) DO UPDATE SET value = CAST(hf_meta.value AS bigint) + 1`

	channelVersion = `SELECT changed FROM hf_channel WHERE name = $1`
	listVersion    = `SELECT changed FROM hf_list WHERE name = $1`
	dropChannel    = `DELETE FROM hf_channel WHERE name = $1`
	dropList       = `DELETE FROM hf_list WHERE name = $1`
	dropRecipients = `DELETE FROM hf_recipient WHERE list = $1`
)

// bookTries bounds how often the book may change while it is read.
const bookTries = 20

// Book keeps channels and lists.
type Book struct{ db side.Store }

var _ notify.BookStore = (*Book)(nil)

// Book implements notify.BookStore.
func (b *Book) Book(ctx context.Context) (notify.Book, error) {
	for range bookTries {
		book, same, err := b.read(ctx)
		if err != nil {
			return notify.Book{}, fmt.Errorf("read channels and lists: %w", err)
		}
		if same {
			return book, nil
		}
	}
	return notify.Book{}, fmt.Errorf("read channels and lists: they change all the time: %w", holdfast.ErrUnavailable)
}

// read reads it in parts. Whatever changes it changes its version: what has
// the same before and after is of one moment.
func (b *Book) read(ctx context.Context) (book notify.Book, same bool, err error) {
	book = notify.Book{Channels: map[string]notify.Channel{}, Lists: map[string]notify.List{}}
	if book.Version, err = b.version(ctx); err != nil {
		return book, false, err
	}
	wall := func(at int64) time.Time { return b.db.Time(rows.Instant(at)) }
	for _, t := range notify.BookTables() {
		if err := b.db.EachRow(ctx, rows.Range{Table: t}, func(r rows.Row) error { return book.Add(r, wall) }); err != nil {
			return book, false, err
		}
	}
	after, err := b.version(ctx)
	return book, after == book.Version, err
}

// BookVersion implements notify.BookStore.
func (b *Book) BookVersion(ctx context.Context) (int64, error) {
	n, err := b.version(ctx)
	if err != nil {
		return 0, fmt.Errorf("read version of channels and lists: %w", err)
	}
	return n, nil
}

// version is 0 where neither a channel nor a list has ever been made.
func (b *Book) version(ctx context.Context) (n int64, err error) {
	err = b.db.Read(ctx, bookVersion, nil, func(scan side.Scan) error { return scan(&n) })
	return n, err
}

// bookChange says what a change of the book expects.
type bookChange struct {
	present string // statement
	name    string
	seen    int64 // zero: there was none
	end     bool  // there must be one
	cost    side.Cost
	kind    holdfast.EntryKind
	actor   string
}

// change runs f if what it changes is what the caller has seen. The version goes first:
// its row is locked, so that of all nodes only one looks and changes at a time.
func (b *Book) change(ctx context.Context, k *bookChange, f func(tx side.Tx) error) error {
	seen := func(tx side.Tx) error {
		found, present := false, int64(0)
		if err := tx.Read(k.present, []any{k.name}, func(scan side.Scan) error {
			found = true
			return scan(&present)
		}); err != nil {
			return err
		}
		return notify.Seen(found, present, k.seen, k.end)
	}
	return b.db.Change(ctx, k.cost, func(tx side.Tx) error {
		err := seen(tx) // before it writes: what is refused undoes nothing of others
		if err == nil {
			_, err = tx.Exec(bumpBook)
		}
		if err == nil {
			err = seen(tx) // another node may have been faster
		}
		if err == nil {
			err = f(tx)
		}
		if err != nil {
			return err
		}
		return tx.Note(&holdfast.Entry{Kind: k.kind, Subject: k.name, Actor: k.actor})
	})
}

// dropping deletes the rows of a name.
func dropping(name string, statements ...string) func(tx side.Tx) error {
	return func(tx side.Tx) error {
		for _, sql := range statements {
			if _, err := tx.Exec(sql, name); err != nil {
				return err
			}
		}
		return nil
	}
}

// PutChannel implements notify.BookStore.
func (b *Book) PutChannel(ctx context.Context, c notify.Channel, actor string) error {
	err := c.Validate()
	var r *rows.Channel
	if err == nil {
		r, err = notify.ChannelRow(&c)
	}
	if err == nil {
		k := &bookChange{present: channelVersion, name: c.Name, seen: c.Version, kind: holdfast.ChannelPut, actor: actor}
		err = b.change(ctx, k, func(tx side.Tx) error { return tx.Put(r) })
	}
	if err != nil {
		return fmt.Errorf("put channel %q: %w", c.Name, err)
	}
	return nil
}

// DeleteChannel implements notify.BookStore.
func (b *Book) DeleteChannel(ctx context.Context, name string, version int64, actor string) error {
	k := &bookChange{present: channelVersion, name: name, seen: version, end: true, kind: holdfast.ChannelRemoved, actor: actor}
	if err := b.change(ctx, k, dropping(name, dropChannel)); err != nil {
		return fmt.Errorf("delete channel %q: %w", name, err)
	}
	return nil
}

// PutList implements notify.BookStore.
func (b *Book) PutList(ctx context.Context, l notify.List, actor string) error {
	err := l.Validate()
	if err == nil {
		k := &bookChange{
			present: listVersion, name: l.Name, seen: l.Version, kind: holdfast.ListPut, actor: actor,
			cost: side.Cost{Rows: len(l.Recipients), Bytes: 128 * len(l.Recipients)},
		}
		err = b.change(ctx, k, func(tx side.Tx) error {
			if err := dropping(l.Name, dropRecipients)(tx); err != nil {
				return err
			}
			return tx.Put(notify.ListRows(&l)...)
		})
	}
	if err != nil {
		return fmt.Errorf("put list %q: %w", l.Name, err)
	}
	return nil
}

// DeleteList implements notify.BookStore.
func (b *Book) DeleteList(ctx context.Context, name string, version int64, actor string) error {
	k := &bookChange{present: listVersion, name: name, seen: version, end: true, kind: holdfast.ListRemoved, actor: actor}
	if err := b.change(ctx, k, dropping(name, dropList, dropRecipients)); err != nil {
		return fmt.Errorf("delete list %q: %w", name, err)
	}
	return nil
}
