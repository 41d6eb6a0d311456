package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// journalPage is how many events one call of a follower's function gets.
const journalPage int64 = 500

// followers knows how far each reader of the journal has come.
type followers struct {
	mu      sync.Mutex
	cursors map[string]int64
	rings   map[chan struct{}]struct{}
}

func newFollowers() *followers {
	return &followers{cursors: map[string]int64{}, rings: map[chan struct{}]struct{}{}}
}

// lowest is the event up to which everybody has read.
func (f *followers) lowest() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	low := int64(math.MaxInt64)
	for _, c := range f.cursors {
		low = min(low, c)
	}
	return low
}

func (f *followers) wake() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.rings {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// Follow calls fn with every change of every message, in order, from the time
// on when a follower of that name was first seen. What fn writes through tx
// commits together with the follower's place, so each event takes effect
// exactly once, over restarts too. Follow blocks until ctx ends (nil) or fn
// fails; a panic of fn is an error. While the disk is full it waits. Events are kept until every follower has
// read them: Unfollow one that will not come back.
func (db *DB) Follow(ctx context.Context, name string, fn func(ctx context.Context, tx *Tx, events []holdfast.Entry) error) error {
	if err := db.register(ctx, name); err != nil {
		return fmt.Errorf("follow journal as %s: %w", name, err)
	}
	f := db.followers
	ring := make(chan struct{}, 1)
	f.mu.Lock()
	f.rings[ring] = struct{}{}
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.rings, ring)
		f.mu.Unlock()
	}()
	poll := time.NewTicker(time.Second)
	defer poll.Stop()
	for {
		n, err := db.followPage(ctx, name, fn)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && errors.Is(err, holdfast.ErrDiskFull) && db.Full():
			// It goes on where it was when there is room again.
		case err != nil:
			return fmt.Errorf("follow journal as %s: %w", name, err)
		case int64(n) == journalPage:
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-db.failed:
			return fmt.Errorf("follow journal as %s: %w", name, db.Err())
		case <-ring:
		case <-poll.C:
		}
	}
}

// Unfollow forgets a follower, so that its events need not be kept. A Follow
// that still runs ends with ErrNotFound.
func (db *DB) Unfollow(ctx context.Context, name string) error {
	err := db.turn(ctx, true, func(_ context.Context, tx *Tx) error {
		return tx.ours(func(wtx *writeTx) error {
			wtx.after = append(wtx.after, func() { db.setFollower(name, -1) })
			_, err := wtx.exec(dropFollower, name)
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("unfollow journal as %s: %w", name, err)
	}
	return nil
}

// setFollower notes how far a follower is, or, with -1, that it is gone. It
// runs before the next transaction begins.
func (db *DB) setFollower(name string, cursor int64) {
	f := db.followers
	f.mu.Lock()
	defer f.mu.Unlock()
	if cursor < 0 {
		delete(f.cursors, name)
	} else {
		f.cursors[name] = cursor
	}
	db.followed.Store(len(f.cursors) > 0)
}

// readFollowers learns of the followers that the file knows: in the caller's
// database other processes have theirs.
func (db *DB) readFollowers(c *conn) error {
	cursors := map[string]int64{}
	if err := c.rows(queries[allFollowers], func(v []driver.Value) error {
		cursors[asText(v[0])] = asInt(v[1])
		return nil
	}); err != nil {
		return err
	}
	f := db.followers
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cursors = cursors
	db.followed.Store(len(cursors) > 0)
	return nil
}

// register makes a follower that is new start at the end of the journal.
func (db *DB) register(ctx context.Context, name string) error {
	return db.Do(ctx, func(_ context.Context, tx *Tx) error {
		return tx.ours(func(wtx *writeTx) error {
			if known, err := wtx.conn.one(getFollower, exists, name); err != nil || known {
				return err
			}
			var at int64
			if _, err := wtx.conn.one(lastEvent, func(v []driver.Value) error {
				at = asInt(v[0])
				return nil
			}); err != nil {
				return err
			}
			wtx.after = append(wtx.after, func() { db.setFollower(name, at) })
			_, err := wtx.exec(setFollower, name, at)
			return err
		})
	})
}

func (db *DB) followPage(ctx context.Context, name string, fn func(ctx context.Context, tx *Tx, events []holdfast.Entry) error) (n int, err error) {
	err = db.Do(ctx, func(ctx context.Context, tx *Tx) (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			}
		}()
		events, err := tx.eventsAfter(name)
		if err != nil || len(events) == 0 {
			return err
		}
		if err := fn(ctx, tx, events); err != nil {
			return err
		}
		n = len(events)
		last := events[n-1].Seq
		return tx.ours(func(wtx *writeTx) error {
			wtx.after = append(wtx.after, func() { db.setFollower(name, last) })
			_, err = wtx.exec(setFollower, name, last)
			return err
		})
	})
	return n, err
}

func (t *Tx) eventsAfter(name string) (events []holdfast.Entry, err error) {
	err = t.ours(func(tx *writeTx) error {
		var cursor int64
		found, err := tx.conn.one(getFollower, func(v []driver.Value) error {
			cursor = asInt(v[0])
			return nil
		}, name)
		if err == nil && !found {
			err = fmt.Errorf("it is not followed any more: %w", holdfast.ErrNotFound)
		}
		if err != nil {
			return err
		}
		return tx.conn.each(eventsAfter, func(v []driver.Value) error {
			e := t.db.readEvent(func(i int) any { return v[i] })
			e.Destination, e.Subject = asText(v[15]), asText(v[16])
			if v[14] != nil {
				e.ID = idFrom(v[14])
			}
			if v[17] != nil {
				e.Detail = []byte(asText(v[17]))
			}
			events = append(events, e)
			return nil
		}, cursor, journalPage)
	})
	return events, err
}
