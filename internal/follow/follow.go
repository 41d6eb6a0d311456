// Package follow is the loop of a follower of the journal, which both stores run: read a
// page, project it, write what comes of it together with the follower's place.
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

// Limit is how many entries a page has at most, and bytes how much they hold: the last one
// may go over it.
const (
	Limit = 500
	bytes = 1 << 20
)

// Project makes rows of a page: that of holdfast.Journal.
type Project = func(ctx context.Context, page []holdfast.Entry) ([]holdfast.Row, error)

// Page is what a follower reads next. P is a place in the journal.
type Page[P comparable] struct {
	From    P // where the follower stands
	Entries []holdfast.Entry
	Ends    []P // the place of each entry, in the order in which they are read
}

// Store is what the loop needs of a store.
type Store[P comparable] interface {
	// Register makes the follower known, if it is not.
	Register(ctx context.Context, f holdfast.Follower) error
	// Read returns the next page of at most Limit entries, or ErrNotFound.
	Read(ctx context.Context, name string) (Page[P], error)
	// Write puts the rows and moves the follower, in one transaction, if it still stands
	// where the page was read.
	Write(ctx context.Context, name string, from, to P, list []holdfast.Row) (moved bool, err error)
}

// Run follows until ctx ends, which is no error, or something fails. The journal rings wake
// when there is more; a poll is the backstop. An error of the store that goes by is waited
// for.
func Run[P comparable](ctx context.Context, s Store[P], f holdfast.Follower, wake <-chan struct{}, project Project) error {
	if f.Name == "" {
		return fmt.Errorf("a follower needs a name: %w", holdfast.ErrInvalid)
	}
	l := loop[P]{store: s, follower: f, project: project, stale: true}
	poll := time.NewTicker(time.Second)
	defer poll.Stop()
	for {
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
	}
}

// passes says that an error of the store goes by: it is away, read-only or full, or nobody
// can tell what became of a commit, which the next page tells.
func passes(err error) bool {
	return !errors.Is(err, holdfast.ErrClosed) &&
		(errors.Is(err, holdfast.ErrUnavailable) || errors.Is(err, holdfast.ErrDiskFull) || errors.Is(err, holdfast.ErrUnknown))
}

type loop[P comparable] struct {
	store    Store[P]
	follower holdfast.Follower
	project  Project
	known    bool // it is registered
	at       P    // where the last page that was written ended
	stale    bool // what the projection has in memory is perhaps not what stands
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
	l.stale = true // until it is known to stand
	moved, err := l.store.Write(ctx, l.follower.Name, p.From, p.Ends[n-1], list)
	if err != nil || !moved {
		return false, err // who follows under the same name is ahead: let it go on
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

// rows are those of a page, as far as a store can put them.
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

// length is how many of the entries fit into a page.
func length(entries []holdfast.Entry) int {
	sum := 0
	for i := range entries {
		e := &entries[i]
		sum += len(e.ID) + len(e.Destination) + len(e.Subject) + len(e.Code) + len(e.Error) + len(e.Actor) + len(e.Detail)
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

// contained makes a panic an error.
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
