package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
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
	if err == nil {
		err = tx.each(ctx, allChannels, func(rows *sql.Rows) error { return db.scanChannel(rows, &b) })
	}
	if err == nil {
		err = tx.each(ctx, allLists, func(rows *sql.Rows) error { return db.scanList(rows, &b) })
	}
	if err == nil {
		err = tx.each(ctx, allRecipients, func(rows *sql.Rows) error { return scanRecipient(rows, &b) })
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

func (s *snapshot) each(ctx context.Context, q query, row func(rows *sql.Rows) error, args ...any) (err error) {
	rows, err := s.QueryContext(ctx, queries[q], args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (db *DB) scanChannel(rows *sql.Rows, b *notify.Book) error {
	var c notify.Channel
	var settings []byte
	var interval, changed int64
	var waits sql.NullString
	if err := rows.Scan(&c.Name, &c.Kind, &settings, &c.Retry.Attempts, &interval, &waits, &c.Workers, &c.Disabled, &changed); err != nil {
		return err
	}
	c.Settings, c.Retry.Interval, c.Changed, c.Version = settings, duration(interval), db.clock.wall(changed), changed
	var list []int64
	if waits.Valid {
		if err := json.Unmarshal([]byte(waits.String), &list); err != nil {
			return fmt.Errorf("waits of channel %q: %w", c.Name, err)
		}
	}
	for _, w := range list {
		c.Retry.Waits = append(c.Retry.Waits, duration(w))
	}
	b.Channels[c.Name] = c
	return nil
}

func (db *DB) scanList(rows *sql.Rows, b *notify.Book) error {
	var l notify.List
	var changed int64
	err := rows.Scan(&l.Name, &l.Description, &l.Partial, &changed)
	l.Changed, l.Version = db.clock.wall(changed), changed
	b.Lists[l.Name] = l
	return err
}

func scanRecipient(rows *sql.Rows, b *notify.Book) error {
	var name string
	var r notify.Recipient
	if err := rows.Scan(&name, &r.Channel, &r.Address, &r.Name, &r.Disabled); err != nil {
		return err
	}
	l := b.Lists[name]
	l.Recipients = append(l.Recipients, r)
	b.Lists[name] = l
	return nil
}

// waitsText is how waits are kept; nil: there are none.
func waitsText(waits []time.Duration) (any, error) {
	if len(waits) == 0 {
		return nil, nil //nolint:nilnil // NULL
	}
	list := make([]int64, len(waits))
	for i, w := range waits {
		list[i] = micros(w)
	}
	text, err := json.Marshal(list)
	return string(text), err
}

// PutChannel implements notify.Store.
func (db *DB) PutChannel(ctx context.Context, c notify.Channel, actor string) error {
	err := c.Validate()
	var waits any
	if err == nil {
		waits, err = waitsText(c.Retry.Waits)
	}
	if err == nil {
		err = db.changeBook(ctx, bookChange{present: channelVersion, name: c.Name, seen: c.Version, kind: holdfast.ChannelPut, actor: actor, change: func(tx *writeTx) error {
			_, err := tx.exec(putChannel, c.Name, c.Kind, nullBytes(c.Settings), int64(c.Retry.Attempts), micros(c.Retry.Interval), waits, int64(c.Workers),
				asBit(c.Disabled), tx.tick())
			return err
		}})
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
			change: func(tx *writeTx) error { return tx.replaceList(&l) },
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

func (tx *writeTx) replaceList(l *notify.List) error {
	if _, err := tx.exec(putList, l.Name, l.Description, asBit(l.Partial), int64(len(l.Recipients)), tx.tick()); err != nil {
		return err
	}
	if _, err := tx.exec(dropRecipients, l.Name); err != nil {
		return err
	}
	for i, r := range l.Recipients {
		if _, err := tx.exec(putRecipient, l.Name, int64(i), r.Channel, r.Address, r.Name, asBit(r.Disabled)); err != nil {
			return err
		}
	}
	return nil
}
