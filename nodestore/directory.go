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

// bookTries limits how often a read begins again because the directory has changed.
const bookTries = 20

// Directory keeps the channels and lists of notifications.
type Directory struct{ db side.Store }

var _ notify.DirectoryStore = (*Directory)(nil)

// Directory implements notify.DirectoryStore.
func (b *Directory) Directory(ctx context.Context) (notify.Directory, error) {
	for range bookTries {
		book, same, err := b.read(ctx)
		if err != nil {
			return notify.Directory{}, fmt.Errorf("read channels and lists: %w", err)
		}
		if same {
			return book, nil
		}
	}
	return notify.Directory{}, fmt.Errorf("read channels and lists: they change all the time: %w", holdfast.ErrUnavailable)
}

// read reads the directory in parts, and reports whether they belong to one moment. Each change of the directory
// changes its version: if the version is the same before and after, they do.
func (b *Directory) read(ctx context.Context) (book notify.Directory, same bool, err error) {
	book = notify.Directory{Channels: map[string]notify.Channel{}, Lists: map[string]notify.List{}}
	wall := func(at int64) time.Time { return b.db.Time(rows.Instant(at)) }
	same, err = b.db.Together(ctx, func(r side.Reader) (err error) {
		if book.Version, err = versionOf(ctx, r); err != nil {
			return err
		}
		for _, t := range notify.DirectoryTables() {
			if err := r.EachRow(ctx, rows.Range{Table: t}, func(row rows.Row) error { return book.Add(row, wall) }); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || same {
		return book, same, err
	}
	after, err := versionOf(ctx, b.db)
	return book, after == book.Version, err
}

// DirectoryVersion implements notify.DirectoryStore.
func (b *Directory) DirectoryVersion(ctx context.Context) (int64, error) {
	n, err := versionOf(ctx, b.db)
	if err != nil {
		return 0, fmt.Errorf("read version of channels and lists: %w", err)
	}
	return n, nil
}

// versionOf returns the version of the directory, or 0 if no channel or list has ever been made.
func versionOf(ctx context.Context, from side.Reader) (n int64, err error) {
	err = from.Read(ctx, bookVersion, nil, func(scan side.Scan) error { return scan(&n) })
	return n, err
}

// bookChange is the condition under which a change of the directory is made.
type bookChange struct {
	present string // statement
	name    string
	seen    int64 // version; 0: the row must be absent
	end     bool  // the change deletes the row, which must exist
	cost    side.Cost
	kind    holdfast.EntryKind
	actor   string
}

// change runs f if the row still is what the caller has seen. It looks before it writes, because a
// refusal after a write undoes the work of the calls that share the transaction. Raising the version
// locks the version's row, so that only one node at a time changes the directory; then it looks again.
func (b *Directory) change(ctx context.Context, k *bookChange, f func(tx side.Tx) error) error {
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
		err := seen(tx)
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

// dropping returns a function that deletes the rows of a name.
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

// PutChannel implements notify.DirectoryStore.
func (b *Directory) PutChannel(ctx context.Context, c notify.Channel, actor string) error {
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

// DeleteChannel implements notify.DirectoryStore.
func (b *Directory) DeleteChannel(ctx context.Context, name string, version int64, actor string) error {
	k := &bookChange{present: channelVersion, name: name, seen: version, end: true, kind: holdfast.ChannelRemoved, actor: actor}
	if err := b.change(ctx, k, dropping(name, dropChannel)); err != nil {
		return fmt.Errorf("delete channel %q: %w", name, err)
	}
	return nil
}

// PutList implements notify.DirectoryStore.
func (b *Directory) PutList(ctx context.Context, l notify.List, actor string) error {
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

// DeleteList implements notify.DirectoryStore.
func (b *Directory) DeleteList(ctx context.Context, name string, version int64, actor string) error {
	k := &bookChange{present: listVersion, name: name, seen: version, end: true, kind: holdfast.ListRemoved, actor: actor}
	if err := b.change(ctx, k, dropping(name, dropList, dropRecipients)); err != nil {
		return fmt.Errorf("delete list %q: %w", name, err)
	}
	return nil
}
