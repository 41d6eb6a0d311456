package node

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/internal/run"
	"github.com/holdfast-mq/holdfast/link/sites"
	"github.com/holdfast-mq/holdfast/metrics"
	"github.com/holdfast-mq/holdfast/notify"
)

// store is what a node asks of the place where it keeps everything, whichever
// that is.
type store interface {
	holdfast.Store
	holdfast.Lanes
	holdfast.Enqueuer
	holdfast.Outbox
	holdfast.Sweepable
	holdfast.InboxLog
	holdfast.Doubting
	holdfast.Journal
	admin.TokenStore
	notify.Store
	sites.Store

	Durability() string
	Failed() <-chan struct{} // closed when it has stopped itself
	Err() error              // why
	Close() error
}

// special is what is particular to one kind of store.
type special struct {
	place string     // where everything is kept, for people
	parts []run.Part // that run beside the node's own
	// present notices a store that was taken away where nothing moves.
	present func() error
	// checks adds to a health report; it must not block.
	checks func(add addCheck)
	// busy says why requests should go elsewhere for now; empty: they need not.
	busy func() string
	// full says that the disk has no room for what is new. Nil: it is not known.
	full func() bool
	// away says that err is about the way to the store, which may mend by
	// itself: checks tells of it, and no restart of the node helps.
	away func(err error) bool
	// giveUp breaks off what waits for the store. Nil: nothing does.
	giveUp func()
	// hangs says that the store does not come back with what was written to it, once
	// the grace of a stop is over.
	hangs func(ctx context.Context) bool
	// elsewhere says that another node delivers for a destination, and that this
	// one has no part of the requests that it bears, limit in all.
	elsewhere func(destination string, limit int) bool
	// measured are its numbers for the metrics.
	measured []metrics.Source
	// acknowledge notes that people know of the store's history. Nil: it has one.
	acknowledge func(ctx context.Context) error
	// backUp copies the store into a folder.
	backUp func(ctx context.Context, folder string) (path string, size int64, err error)
}

// leaves says whether an error, or each that was joined to it, is about the way to
// the store, or about what became of a commit.
func (s *special) leaves(err error) bool {
	if list := joined(err); list != nil {
		return !slices.ContainsFunc(list, func(err error) bool { return !s.leaves(err) })
	}
	return s.away(err) || errors.Is(err, holdfast.ErrUnknown)
}

// joined are the errors that stand beside each other. One that has two meanings is one.
func joined(err error) []error {
	several, prefixed := reflect.TypeOf(errors.Join(holdfast.ErrUnknown)), reflect.TypeOf(fmt.Errorf("%w", holdfast.ErrUnknown))
	for reflect.TypeOf(err) == prefixed {
		err = errors.Unwrap(err)
	}
	if all, ok := err.(interface{ Unwrap() []error }); ok && reflect.TypeOf(err) == several {
		return all.Unwrap()
	}
	return nil
}

// addCheck adds one check to a health report.
type addCheck func(name, status, detail string)
