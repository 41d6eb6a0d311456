// Package follow has the loop of a follower of the journal, which both stores run: it reads a page,
// projects it, and writes the resulting rows together with the follower's place.
package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/rows"
)

// Limit is the most entries of a page. bytes limits their contents; the last entry may exceed it.
const (
	Limit = 500
	bytes = 1 << 20
)

// Project makes rows from a page, as holdfast.Journal's does.
type Project = func(ctx context.Context, page []holdfast.Entry) ([]holdfast.Row, error)

// Page is what a follower reads next. P is a place in the journal.
type Page[P comparable] struct {
	From    P // place of the follower
	Entries []holdfast.Entry
	Ends    []P // place of each entry, in reading order
}

// Store is the part of a store that the loop needs.
type Store[P comparable] interface {
	// Register registers the follower if it is new.
	Register(ctx context.Context, f holdfast.Follower) error
	// Read returns the next page of at most Limit entries, or ErrNotFound.
	Read(ctx context.Context, name string) (Page[P], error)
	// Write puts the rows and moves the follower from from to to, in one transaction. It does
	// nothing and returns false if the follower is no longer at from.
	Write(ctx context.Context, name string, from, to P, list []holdfast.Row) (moved bool, err error)
}

// gap is the shortest time between the reads of two pages, unless the first was full. While entries
// keep coming, a page then has many, and its transaction is worth its cost.
const gap = 20 * time.Millisecond

// Run follows until ctx ends, which is no error, or until something fails. The journal signals wake
// when there is more; a poll is the backstop. After a temporary error of the store it waits and
// continues.
func Run[P comparable](ctx context.Context, s Store[P], f holdfast.Follower, wake <-chan struct{}, project Project) error {
	if f.Name == "" {
		return fmt.Errorf("a follower needs a name: %w", holdfast.ErrInvalid)
	}
	l := loop[P]{store: s, follower: f, project: project, stale: true}
	poll := time.NewTicker(time.Second)
	defer poll.Stop()
	for {
		next := time.NewTimer(gap)
		more, err := l.page(ctx)
		own, ours := errors.AsType[*projectError](err)
		switch {
		case ctx.Err() != nil:
			return nil
		case ours:
			return own.err
		case err != nil && !passes(err):
			return err
		case err == nil && more:
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-wake:
		case <-poll.C:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-next.C:
		}
	}
}

// passes reports that an error of the store is temporary: the store is unavailable, read-only or
// full, or the outcome of a commit is unknown, which the next page will show.
func passes(err error) bool {
	return !errors.Is(err, holdfast.ErrClosed) &&
		(errors.Is(err, holdfast.ErrUnavailable) || errors.Is(err, holdfast.ErrDiskFull) || errors.Is(err, holdfast.ErrUnknown))
}

type loop[P comparable] struct {
	store    Store[P]
	follower holdfast.Follower
	project  Project
	known    bool // the follower is registered
	at       P    // end of the last page that was written
	stale    bool // the projection's memory may differ from the store
}

func (l *loop[P]) page(ctx context.Context) (more bool, err error) {
	if !l.known {
		if err := l.store.Register(ctx, l.follower); err != nil {
			return false, err
		}
		l.known = true
	}
	p, err := l.store.Read(ctx, l.follower.Name)
	if err != nil {
		return false, err
	}
	l.stale = l.stale || p.From != l.at // another process has written a page, or a copy was restored
	if len(p.Entries) == 0 {
		return false, nil
	}
	if l.stale {
		if err := l.resume(ctx); err != nil {
			return false, err
		}
	}
	n := length(p.Entries)
	slices.SortFunc(p.Entries[:n], func(a, b holdfast.Entry) int { return cmp.Compare(a.Seq, b.Seq) })
	list, err := l.rows(ctx, p.Entries[:n])
	if err != nil {
		return false, err
	}
	l.stale = true // until the write is known to have succeeded
	moved, err := l.store.Write(ctx, l.follower.Name, p.From, p.Ends[n-1], list)
	if err != nil || !moved {
		return false, err // another follower with this name is ahead: let it continue
	}
	l.at, l.stale = p.Ends[n-1], false
	return n == Limit || n < len(p.Entries), nil
}

func (l *loop[P]) resume(ctx context.Context) error {
	if l.follower.Resume == nil {
		return nil
	}
	return contained(func() error { return l.follower.Resume(ctx) })
}

// rows returns the rows of a page, and an error for rows that no store can put.
func (l *loop[P]) rows(ctx context.Context, page []holdfast.Entry) (list []holdfast.Row, err error) {
	err = contained(func() (err error) {
		if list, err = l.project(ctx, page); err != nil {
			return err
		}
		if err := rows.CheckPlain(list...); err != nil {
			return fmt.Errorf("%w: %w", holdfast.ErrInvalid, err)
		}
		return ctx.Err()
	})
	return list, err
}

// length returns how many of the entries fit into a page.
func length(entries []holdfast.Entry) int {
	sum := 0
	for i := range entries {
		e := &entries[i]
		sum += len(e.ID) + len(e.Destination) + len(e.Subject) + len(e.Code) + len(e.Error) + len(e.Actor) + len(e.Detail)
		if e.About != nil {
			for name, value := range e.About.Headers {
				sum += len(name) + len(value)
			}
		}
		if sum >= bytes || i+1 == Limit {
			return i + 1
		}
	}
	return len(entries)
}

// projectError is an error of the projection, whatever it says about the store.
type projectError struct{ err error }

func (e *projectError) Error() string { return e.err.Error() }
func (e *projectError) Unwrap() error { return e.err }

// contained turns a panic into an error.
func contained(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &projectError{fmt.Errorf("the follower panicked: %v\n%s", p, debug.Stack())}
		}
	}()
	if err := fn(); err != nil {
		return &projectError{err}
	}
	return nil
}
