package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/follow"
)

var _ holdfast.Journal = (*DB)(nil)

// Project implements holdfast.Journal. Pages come in the order in which the transactions of their
// entries began. If one change waited for another, the later one may be in an earlier page.
//
// An entry is shown when every transaction that began before its own has ended. A long transaction
// of any client of the server therefore delays followers.
func (db *DB) Project(ctx context.Context, f holdfast.Follower, project func(ctx context.Context, page []holdfast.Entry) ([]holdfast.Row, error)) error {
	err := db.usable(ctx)
	if err == nil {
		wake := db.wakes.followers.Subscribe()
		defer wake.Stop()
		defer db.following.Begin(f.Name)()
		err = follow.Run(ctx, &journal{db: db, about: f.About}, f, wake.C, project)
	}
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("project journal for %q: %w", f.Name, err)
	}
	return nil
}

// Forget implements holdfast.Journal.
func (db *DB) Forget(ctx context.Context, follower string) error {
	err := db.usable(ctx)
	found := false
	if err == nil {
		err = db.unbound(ctx, func(tx *ownTx) error {
			found = false
			return tx.query(dropFollower, []any{follower}, func(rows pgx.Rows) error {
				found = true
				return rows.Scan(nil)
			})
		})
	}
	if err == nil && !found {
		err = holdfast.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("forget follower %q: %w", follower, err)
	}
	return nil
}

// Followers implements holdfast.Journal.
func (db *DB) Followers(ctx context.Context) (list []holdfast.FollowerInfo, err error) {
	if err := db.read(ctx, unreadSince, nil, func(rows pgx.Rows) error {
		var i holdfast.FollowerInfo
		var at int64
		err := rows.Scan(&i.Name, &at)
		i.Unread, i.Running = db.clock.wall(at), db.following.Has(i.Name)
		list = append(list, i)
		return err
	}); err != nil {
		return nil, fmt.Errorf("list followers: %w", err)
	}
	return list, nil
}

// place is the position up to which a follower has read.
type place struct {
	tx  string
	seq int64
}

// journal is the store of a follower's loop.
type journal struct {
	db    *DB
	about bool
	turn  uint64 // the history of the last page
}

// Register implements follow.Store.
func (j *journal) Register(ctx context.Context, f holdfast.Follower) error {
	return j.db.unbound(ctx, func(tx *ownTx) error { return tx.exec(addFollower, f.Name, f.FromStart) })
}

// Read implements follow.Store.
func (j *journal) Read(ctx context.Context, name string) (p follow.Page[place], err error) {
	j.turn, _ = j.db.past.is()
	if err := j.db.read(ctx, getFollower, []any{name}, func(rows pgx.Rows) error { return rows.Scan(&p.From.tx, &p.From.seq) }); err != nil {
		return p, err
	}
	if p.From.tx == "" {
		return p, fmt.Errorf("it is not followed any more: %w", holdfast.ErrNotFound)
	}
	err = j.db.read(ctx, eventsAfter, []any{p.From.tx, p.From.seq, follow.Limit, j.about}, func(rows pgx.Rows) error {
		var e holdfast.Entry
		var at place
		var id, more []byte
		var a holdfast.About
		var headers *string
		var created *int64
		err := j.db.scanEvent(rows, &e, &at.tx, &id, &e.Destination, &e.Subject, &more, &a.Source, &a.Kind, &a.Endpoint, &headers, &a.CorrelationID, &created)
		if at.seq = e.Seq; id != nil {
			e.ID = idFrom(id)
		}
		if len(more) > 0 {
			e.Detail = more
		}
		if created != nil {
			m := holdfast.Message{ID: e.ID}
			j.db.readExtras(&m, headers, nil)
			a.Headers, a.Created = m.Headers, j.db.clock.wall(*created)
			e.About = &a
		}
		p.Entries, p.Ends = append(p.Entries, e), append(p.Ends, at)
		return err
	})
	return p, err
}

// Write implements follow.Store.
func (j *journal) Write(ctx context.Context, name string, from, to place, list []holdfast.Row) (moved bool, err error) {
	err = j.db.own(ctx, func(tx *ownTx) error {
		moved = false
		if err := tx.still(j.turn); err != nil {
			return err
		}
		if err := tx.query(moveFollower, []any{name, from.tx, from.seq, to.tx, to.seq}, func(rows pgx.Rows) error {
			moved = true
			return rows.Scan(nil)
		}); err != nil || !moved {
			return err
		}
		return tx.put(list...)
	})
	return moved, err
}

// renumber adapts the journal of a database that was dumped from another cluster. The transactions
// there had higher numbers, and its entries would come after all new ones. Nobody writes to the
// journal here before a store is opened.
func (db *DB) renumber(ctx context.Context) error {
	elsewhere := func(ctx context.Context, c *pgx.Conn) (is bool, err error) {
		err = each(ctx, c, isElsewhere, nil, func(rows pgx.Rows) error { return rows.Scan(&is) })
		return is, err
	}
	conn, err := db.pools.own.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if is, err := elsewhere(ctx, conn.Conn()); err != nil || !is {
		return err
	}
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		for _, sql := range []string{noTimeout, lockJournal} {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		if is, err := elsewhere(ctx, tx.Conn()); err != nil || !is {
			return err // another node was first
		}
		_, err := tx.Exec(ctx, renumber)
		return err
	})
}

// Append implements holdfast.Journal.
func (db *DB) Append(ctx context.Context, entries ...holdfast.Entry) error {
	err := holdfast.CheckEntries(entries)
	if err == nil {
		err = db.usable(ctx)
	}
	followed := false
	if err == nil {
		err = db.read(ctx, isFollowed, nil, func(rows pgx.Rows) error { return rows.Scan(&followed) })
	}
	if err == nil && followed {
		err = db.unbound(ctx, func(tx *ownTx) error { return tx.run(notesOf(entries...)) })
	}
	if err != nil {
		return fmt.Errorf("append to the journal: %w", err)
	}
	return nil
}

// note adds a journal entry that is not about a message, to be written before the commit if the
// journal has a follower.
func (tx *ownTx) note(e *holdfast.Entry) { tx.last = append(tx.last, notesOf(*e)) }

func notesOf(list ...holdfast.Entry) statement {
	kinds, outcomes := make([]int16, len(list)), make([]int16, len(list))
	texts := make([][]*string, 5)
	for i := range list {
		e := &list[i]
		kinds[i], outcomes[i] = int16(e.Kind), int16(e.Outcome)
		for n, s := range []string{e.Code, e.Error, e.Actor, e.Subject, string(e.Detail)} {
			texts[n] = append(texts[n], nullText(cleanText(s)))
		}
	}
	return statement{insertNotes, []any{kinds, outcomes, texts[0], texts[1], texts[2], texts[3], texts[4]}, nil}
}
