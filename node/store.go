package node

import (
	"context"
	"log/slog"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/run"
	"github.com/holdfast-mq/holdfast/link"
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
	admin.TokenStore
	notify.Store
	link.Store

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
	// giveUp breaks off what waits for the store, once the grace of a stop is over.
	// Nil: nothing does.
	giveUp func()
	// elsewhere says that another node delivers for a destination, and that this
	// one has no part of the requests that it bears, limit in all.
	elsewhere func(destination string, limit int) bool
	// measure adds what is shown of it in the metrics.
	measure func(o *metrics.Options)
	// acknowledge notes that people know of the store's history. Nil: it has one.
	acknowledge func(ctx context.Context) error
	// backUp copies the store into a folder.
	backUp func(ctx context.Context, folder string) (path string, size int64, err error)
}

// addCheck adds one check to a health report.
type addCheck func(name, status, detail string)

// openStore opens the store that the configuration names. It is the one place
// that knows which kinds there are.
func openStore(ctx context.Context, c *config.Config, o holdfast.Observer, log *slog.Logger) (store, special, error) {
	if c.Store.IsZero() {
		return openFile(ctx, c, o, log)
	}
	return openPostgres(ctx, c, o, log)
}
