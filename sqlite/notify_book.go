package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/rows"
)

// Book implements notify.Store.
func (db *DB) Book(ctx context.Context) (b notify.Book, err error) {
	// One snapshot: the version is that of the rest.
	tx, err := db.snapshot(ctx)
	if err != nil {
		return b, fmt.Errorf("read channels and lists: %w", err)
	}
	defer func() { _ = tx.end() }()
	b = notify.Book{Channels: map[string]notify.Channel{}, Lists: map[string]notify.List{}}
	b.Version, err = version(tx.QueryRowContext(ctx, queries[bookVersion]))
	for _, t := range notify.BookTables() {
		if err == nil {
			err = eachRowOf(ctx, tx, rows.Range{Table: t}, func(r rows.Row) error { return b.Add(r, db.clock.wall) })
		}
	}
	if err != nil {
		return notify.Book{}, fmt.Errorf("read channels and lists: %w", db.noted(err))
	}
	return b, nil
}

// BookVersion implements notify.Store.
func (db *DB) BookVersion(ctx context.Context) (int64, error) {
	var n int64
	err := db.oftenOne(ctx, bookVersion, nil, &n)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil // none has ever been made
	}
	if err != nil {
		return 0, fmt.Errorf("read version of channels and lists: %w", err)
	}
	return n, nil
}

func version(row *sql.Row) (n int64, err error) {
	if err = row.Scan(&n); errors.Is(err, sql.ErrNoRows) {
		return 0, nil // none has ever been made
	}
	return n, err
}

func (s *snapshot) each(ctx context.Context, q query, row func(found *sql.Rows) error, args ...any) (err error) {
	found, err := s.QueryContext(ctx, queries[q], args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		if err := row(found); err != nil {
			return err
		}
	}
	return found.Err()
}

// PutChannel implements notify.Store.
func (db *DB) PutChannel(ctx context.Context, c notify.Channel, actor string) error {
	err := c.Validate()
	var r *rows.Channel
	if err == nil {
		r, err = notify.ChannelRow(&c)
	}
	if err == nil {
		err = db.changeBook(ctx, bookChange{present: channelVersion, name: c.Name, seen: c.Version, kind: holdfast.ChannelPut, actor: actor, change: func(tx *writeTx) error { return tx.put(r) }})
	}
	if err != nil {
		return fmt.Errorf("put channel %q: %w", c.Name, err)
	}
	return nil
}

// DeleteChannel implements notify.Store.
func (db *DB) DeleteChannel(ctx context.Context, name string, version int64, actor string) error {
	err := db.changeBook(ctx, bookChange{present: channelVersion, name: name, seen: version, end: true, kind: holdfast.ChannelRemoved, actor: actor, change: func(tx *writeTx) error {
		_, err := tx.exec(dropChannel, name)
		return err
	}})
	if err != nil {
		return fmt.Errorf("delete channel %q: %w", name, err)
	}
	return nil
}

// bookChange is the work of what changes the book, if what it changes is what
// the caller has seen.
type bookChange struct {
	present    statement
	name       string
	seen       int64 // zero: there was none
	end        bool  // there must be one
	recipients int
	kind       holdfast.EntryKind
	actor      string
	change     func(tx *writeTx) error
	fault      error
}

func (db *DB) changeBook(ctx context.Context, k bookChange) error {
	err := db.writer.do(ctx, &k)
	if err == nil {
		err = k.fault
	}
	return err
}

func (k *bookChange) size() (int, int) { return 2 + k.recipients/4, 128 * k.recipients }

func (k *bookChange) apply(tx *writeTx) error {
	k.fault = nil
	var present int64
	found, err := tx.conn.one(k.present, func(v []driver.Value) error {
		present = asInt(v[0])
		return nil
	}, k.name)
	if err != nil {
		return err
	}
	if k.fault = notify.Seen(found, present, k.seen, k.end); k.fault != nil {
		return nil //nolint:nilerr // it concerns this caller only
	}
	if err := k.change(tx); err != nil {
		return err
	}
	if _, err = tx.exec(bumpBook); err != nil {
		return err
	}
	return tx.note(0, &holdfast.Entry{Kind: k.kind, Subject: k.name, Actor: k.actor})
}

// PutList implements notify.Store.
func (db *DB) PutList(ctx context.Context, l notify.List, actor string) error {
	err := l.Validate()
	if err == nil {
		err = db.changeBook(ctx, bookChange{
			present: listVersion, name: l.Name, seen: l.Version, recipients: len(l.Recipients), kind: holdfast.ListPut, actor: actor,
			change: func(tx *writeTx) error {
				if _, err := tx.exec(dropRecipients, l.Name); err != nil {
					return err
				}
				return tx.put(notify.ListRows(&l)...)
			},
		})
	}
	if err != nil {
		return fmt.Errorf("put list %q: %w", l.Name, err)
	}
	return nil
}

// DeleteList implements notify.Store.
func (db *DB) DeleteList(ctx context.Context, name string, version int64, actor string) error {
	err := db.changeBook(ctx, bookChange{present: listVersion, name: name, seen: version, end: true, kind: holdfast.ListRemoved, actor: actor, change: func(tx *writeTx) error {
		if _, err := tx.exec(dropList, name); err != nil {
			return err
		}
		_, err := tx.exec(dropRecipients, name)
		return err
	}})
	if err != nil {
		return fmt.Errorf("delete list %q: %w", name, err)
	}
	return nil
}
