package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/follow"
)

var _ holdfast.Journal = (*DB)(nil)

// readByAll returns the last entry that every follower, of any process, has read.
func readByAll(c *conn) (seq int64, err error) {
	_, err = c.one(lowestCursor, func(v []driver.Value) error {
		seq = asInt(v[0])
		return nil
	})
	return seq, err
}

// Project implements holdfast.Journal.
func (db *DB) Project(ctx context.Context, f holdfast.Follower, project func(ctx context.Context, page []holdfast.Entry) ([]holdfast.Row, error)) error {
	wake := db.followers.Subscribe()
	defer wake.Stop()
	defer db.following.Begin(f.Name)()
	err := follow.Run(ctx, journal{db, f.About}, f, wake.C, project)
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("project journal for %q: %w", f.Name, err)
	}
	return nil
}

// journal implements the store of a follower's loop.
type journal struct {
	db    *DB
	about bool
}

// Register implements follow.Store.
func (j journal) Register(ctx context.Context, f holdfast.Follower) error {
	return j.db.writer.do(ctx, workFunc(func(tx *writeTx) error {
		var at int64
		if _, err := tx.conn.one(lastEvent, func(v []driver.Value) error {
			at = asInt(v[0])
			return nil
		}); err != nil {
			return err
		}
		if f.FromStart {
			at = 0
		}
		j.db.followed.Store(true) // before others see the follower; if it comes to nothing, some entries are written for nobody
		_, err := tx.exec(addFollower, f.Name, at)
		return err
	}))
}

// Forget implements holdfast.Journal. It works on a full disk too.
func (db *DB) Forget(ctx context.Context, follower string) error {
	missing := false
	err := db.turn(ctx, true, func(_ context.Context, tx *Tx) error {
		return tx.ours(func(wtx *writeTx) error {
			n, err := wtx.exec(dropFollower, follower)
			if missing = n == 0; err != nil || missing {
				return err
			}
			low, err := readByAll(wtx.conn)
			wtx.after = append(wtx.after, func() {
				db.followed.Store(low < never)
				db.followers.RingAll() // the one that is forgotten ends
			})
			return err
		})
	})
	if err == nil && missing {
		err = holdfast.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("forget follower %q: %w", follower, err)
	}
	return nil
}

// Followers implements holdfast.Journal.
func (db *DB) Followers(ctx context.Context) (list []holdfast.FollowerInfo, err error) {
	found, err := db.query(ctx, unreadSince)
	if err != nil {
		return nil, fmt.Errorf("list followers: %w", err)
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		var i holdfast.FollowerInfo
		var at sql.NullInt64
		if err := found.Scan(&i.Name, &at); err != nil {
			return nil, fmt.Errorf("list followers: %w", err)
		}
		i.Unread, i.Running = db.wall(at), db.following.Has(i.Name)
		list = append(list, i)
	}
	return list, found.Err()
}

// Read implements follow.Store.
func (j journal) Read(ctx context.Context, name string) (p follow.Page[int64], err error) {
	s, err := j.db.snapshot(ctx, getFollower, eventsAfter)
	if err != nil {
		return p, err
	}
	defer func() { _ = s.end() }()
	err = s.QueryRowContext(ctx, queries[getFollower], name).Scan(&p.From)
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("it is not followed any more: %w", holdfast.ErrNotFound)
	}
	if err != nil {
		return p, j.db.noted(err)
	}
	err = s.each(ctx, eventsAfter, func(found *sql.Rows) error {
		v, err := values(found, eventColumnCount+6)
		if err != nil {
			return err
		}
		e := j.db.readEvent(func(i int) any { return v[i] })
		e.Destination, e.Subject = asText(v[15]), asText(v[16])
		if v[14] != nil {
			e.ID = idFrom(v[14])
		}
		if v[17] != nil {
			e.Detail = []byte(asText(v[17]))
		}
		if v[23] != nil {
			e.About = j.db.readAbout(&e, v[18:])
		}
		p.Entries, p.Ends = append(p.Entries, e), append(p.Ends, e.Seq)
		return nil
	}, p.From, follow.Limit, j.about)
	return p, j.db.noted(err)
}

// projected writes the result of a projected page.
type projected struct {
	db       *DB
	name     string
	from, to int64
	list     []holdfast.Row
	moved    bool
}

// Write implements follow.Store.
func (j journal) Write(ctx context.Context, name string, from, to int64, list []holdfast.Row) (moved bool, err error) {
	k := &projected{db: j.db, name: name, from: from, to: to, list: list}
	err = j.db.writer.along(ctx, k)
	return k.moved, err
}

func (k *projected) size() (int, int) { return 1 + len(k.list), 512 * len(k.list) }

func (k *projected) apply(tx *writeTx) error {
	n, err := tx.exec(moveFollower, k.name, k.from, k.to)
	if k.moved = n > 0; err != nil || !k.moved {
		return err
	}
	return tx.put(k.list...)
}
