package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
)

// journalPage is how many events one call of a follower's function gets.
const journalPage = 500

// Follow calls fn with every change of every message from the time on when a
// follower of that name was first seen, in the order in which transactions
// began. Of one message's changes Event.Seq tells the order: of two that waited
// for each other the later one may be shown first. What fn writes through tx
// commits together with the follower's place, so each event takes effect
// exactly once, over restarts and over all nodes: of several that follow under
// one name one is called at a time. Follow blocks until ctx ends (nil) or fn
// fails; a panic of fn is an error. While the database is away it waits.
//
// An event is shown when every transaction that began before its own has
// ended: one that stays open for long, of anybody's on the server, delays
// followers. Events are kept until every follower has read them: Unfollow one
// that will not come back.
func (db *DB) Follow(ctx context.Context, name string, fn func(ctx context.Context, tx *Tx, events []holdfast.Entry) error) error {
	if err := db.usable(ctx); err != nil {
		return fmt.Errorf("follow journal as %s: %w", name, err)
	}
	if err := db.unbound(ctx, func(tx *ownTx) error { return tx.exec(addFollower, name) }); err != nil {
		return fmt.Errorf("follow journal as %s: %w", name, err)
	}
	wake := db.Wake()
	defer wake.Stop()
	poll := time.NewTicker(time.Second)
	defer poll.Stop()
	for {
		n, err := db.followPage(ctx, name, fn)
		switch {
		case ctx.Err() != nil:
			return nil
		case db.gone.Load():
			return fmt.Errorf("follow journal as %s: %w", name, holdfast.ErrClosed)
		case err != nil && !isFollowers(err) && isAway(err):
			// It goes on where it was when the database is there again.
		case err != nil:
			return fmt.Errorf("follow journal as %s: %w", name, err)
		case n == journalPage:
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-wake.C:
		case <-poll.C:
		}
	}
}

// Append implements holdfast.Journal.
func (db *DB) Append(ctx context.Context, entries ...holdfast.Entry) error {
	err := holdfast.CheckEntries(entries)
	if err == nil {
		err = db.usable(ctx)
	}
	if err == nil {
		err = db.unbound(ctx, func(tx *ownTx) error {
			for i := range entries {
				if err := tx.run(noteOf(&entries[i])); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("append to the journal: %w", err)
	}
	return nil
}

// note has an entry that is about no message written before the commit, if
// anything follows the journal.
func (tx *ownTx) note(e *holdfast.Entry) { tx.last = append(tx.last, noteOf(e)) }

func noteOf(e *holdfast.Entry) statement {
	text := func(s string) *string { return nullText(cleanText(s)) }
	return statement{insertNote, []any{
		int16(e.Kind), int16(e.Outcome), text(e.Code), text(e.Error), text(e.Actor), text(e.Subject), text(string(e.Detail)),
	}, nil}
}

// detail is one word more about an entry, as JSON.
func detail(name, value string) []byte {
	b, err := json.Marshal(map[string]string{name: value})
	if err != nil { // a text always becomes JSON
		return nil
	}
	return b
}

// Unfollow forgets a follower, so that its events need not be kept. A Follow
// that still runs ends with ErrNotFound.
func (db *DB) Unfollow(ctx context.Context, name string) error {
	err := db.usable(ctx)
	if err == nil {
		err = db.unbound(ctx, func(tx *ownTx) error { return tx.exec(dropFollower, name) })
	}
	if err != nil {
		return fmt.Errorf("unfollow journal as %s: %w", name, err)
	}
	return nil
}

// place is how far a follower has read.
type place struct {
	tx  string
	seq int64
}

func (db *DB) followPage(ctx context.Context, name string, fn func(ctx context.Context, tx *Tx, events []holdfast.Entry) error) (n int, err error) {
	err = db.Do(ctx, func(ctx context.Context, tx *Tx) error {
		var at place
		if err := tx.do(ctx, statement{lockFollower, []any{name}, func(rows pgx.Rows) error { return rows.Scan(&at.tx, &at.seq) }}); err != nil {
			return err
		}
		if at.tx == "" {
			return fmt.Errorf("it is not known any more: %w", holdfast.ErrNotFound)
		}
		var events []holdfast.Entry
		if err := tx.do(ctx, statement{eventsAfter, []any{at.tx, at.seq, journalPage}, func(rows pgx.Rows) error {
			var e holdfast.Entry
			var id, more []byte
			err := db.scanEvent(rows, &e, &at.tx, &id, &e.Destination, &e.Subject, &more)
			if at.seq = e.Seq; id != nil {
				e.ID = idFrom(id)
			}
			if len(more) > 0 {
				e.Detail = more
			}
			events = append(events, e)
			return err
		}}); err != nil || len(events) == 0 {
			return err
		}
		n = len(events)
		if err := contained(func() error { return fn(ctx, tx, events) }); err != nil {
			return &followerError{err}
		}
		return tx.do(ctx, statement{moveFollower, []any{name, at.tx, at.seq}, nil})
	})
	return n, err
}

// followerError is an error of the follower's function, whatever it says about
// connections of its own.
type followerError struct{ err error }

func (e *followerError) Error() string { return e.err.Error() }
func (e *followerError) Unwrap() error { return e.err }

func isFollowers(err error) bool {
	_, ok := errors.AsType[*followerError](err)
	return ok
}

// contained makes a panic an error.
func contained(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the follower panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return fn()
}
