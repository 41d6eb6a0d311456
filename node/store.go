package node

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/internal/run"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/metrics"
	"github.com/holdfast-mq/holdfast/notify"
)

// store is what a node needs of its store, of whichever kind.
type store interface {
	fanout.Mover
	holdfast.Store
	holdfast.Lanes
	holdfast.Enqueuer
	holdfast.Outbox
	holdfast.Sweepable
	holdfast.InboxLog
	holdfast.Doubting
	holdfast.Journal
	notify.Store
	side.Base

	Durability() string
	Failed() <-chan struct{} // closed when the store has stopped itself
	Err() error              // why it stopped
	Close() error
}

// special is what differs between the kinds of stores.
type special struct {
	place string     // where everything is kept, for people
	parts []run.Part // parts that run next to the node's own
	// present notices that the store was removed while nothing moves.
	present func() error
	// checks adds to a health report. It must not block.
	checks func(add addCheck)
	// busy says why requests should go elsewhere for now. Empty: no reason.
	busy func() string
	// full reports whether the disk has no room for new data. Nil: unknown.
	full func() bool
	// away reports whether err is about the connection to the store, which may recover by itself. Then checks
	// reports it, and a restart of the node does not help.
	away func(err error) bool
	// giveUp breaks off what waits for the store. Nil: nothing waits.
	giveUp func()
	// hangs reports whether the store does not answer writes, once the grace of a stop is over.
	hangs func(ctx context.Context) bool
	// elsewhere reports whether another node delivers to a destination and has all of the limit requests that it bears.
	elsewhere func(destination string, limit int) bool
	// measured are its sources of metrics.
	measured []metrics.Source
	// acknowledge records that people know about the store's history. Nil: it has only one history.
	acknowledge func(ctx context.Context) error
	// backUp copies the store into a folder.
	backUp func(ctx context.Context, folder string) (path string, size int64, err error)
}

// leaves reports whether an error, or each error joined to it, is about the connection to the store or about
// the fate of a commit.
func (s *special) leaves(err error) bool {
	if list := joined(err); list != nil {
		return !slices.ContainsFunc(list, func(err error) bool { return !s.leaves(err) })
	}
	return s.away(err) || errors.Is(err, holdfast.ErrUnknown)
}

// joined returns the errors that errors.Join put together. One error with two meanings stays one.
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
