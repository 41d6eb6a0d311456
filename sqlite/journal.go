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
const journalPage = 500

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
// fails; a panic of fn is an error. Events are kept until every follower has
// read them: Unfollow one that will not come back.
func (db *DB) Follow(ctx context.Context, name string, fn func(ctx context.Context, tx *Tx, events []holdfast.Event) error) error {
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
		case err != nil:
			return fmt.Errorf("follow journal as %s: %w", name, err)
		case n == journalPage:
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

// Unfollow forgets a follower, so that its events need not be kept.
func (db *DB) Unfollow(ctx context.Context, name string) error {
	err := db.Do(ctx, func(_ context.Context, tx *Tx) error {
		_, err := tx.wtx.exec(dropFollower, name)
		return err
	})
	if err != nil {
		return fmt.Errorf("unfollow journal as %s: %w", name, err)
	}
	f := db.followers
	f.mu.Lock()
	delete(f.cursors, name)
	db.followed.Store(len(f.cursors) > 0)
	f.mu.Unlock()
	return nil
}

func (db *DB) register(ctx context.Context, name string) error {
	f := db.followers
	f.mu.Lock()
	_, known := f.cursors[name]
	f.mu.Unlock()
	if known {
		return nil
	}
	var at int64
	err := db.Do(ctx, func(ctx context.Context, tx *Tx) error {
		if err := tx.QueryRowContext(ctx, `SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'hf_event'`).Scan(&at); err != nil {
			return err
		}
		_, err := tx.wtx.exec(setFollower, name, at)
		tx.wtx.after = append(tx.wtx.after, func() { // before the next transaction begins
			f.mu.Lock()
			f.cursors[name] = at
			db.followed.Store(true)
			f.mu.Unlock()
		})
		return err
	})
	return err
}

func (db *DB) followPage(ctx context.Context, name string, fn func(ctx context.Context, tx *Tx, events []holdfast.Event) error) (n int, err error) {
	last := int64(0)
	err = db.Do(ctx, func(ctx context.Context, tx *Tx) (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			}
		}()
		events, err := tx.eventsAfter(ctx, name)
		if err != nil || len(events) == 0 {
			return err
		}
		n, last = len(events), events[len(events)-1].Seq
		if err := fn(ctx, tx, events); err != nil {
			return err
		}
		_, err = tx.wtx.exec(setFollower, name, last)
		return err
	})
	if err != nil || n == 0 {
		return 0, err
	}
	f := db.followers
	f.mu.Lock()
	if _, ok := f.cursors[name]; ok {
		f.cursors[name] = last
	}
	f.mu.Unlock()
	return n, nil
}

func (t *Tx) eventsAfter(ctx context.Context, name string) (events []holdfast.Event, err error) {
	var cursor int64
	if _, err := t.wtx.conn.one(getFollower, func(v []driver.Value) error {
		cursor = asInt(v[0])
		return nil
	}, name); err != nil {
		return nil, err
	}
	rows, err := t.QueryContext(ctx, `SELECT `+eventColumns+`, m.id, l.destination FROM hf_event AS e
		JOIN hf_message AS m ON m.seq = e.message JOIN hf_lane AS l ON l.lane = m.lane
		WHERE e.seq > ?1 ORDER BY e.seq LIMIT ?2`, cursor, journalPage)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		v, err := values(rows, 16)
		if err != nil {
			return nil, err
		}
		e := t.db.readEvent(v)
		e.ID, e.Destination = idFrom(v[14]), asText(v[15])
		events = append(events, e)
	}
	return events, rows.Err()
}
