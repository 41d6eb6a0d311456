package node

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/holdfast-mq/holdfast/notify"
)

// office is the part of a node that brings notifications to people.
type office struct {
	books    *notify.DirectoryCache
	ingester *notify.Ingester
	channels *notify.Channels
	desk     *notify.Intake
	sweeper  *notify.Sweeper

	mu   sync.Mutex
	sown []string // lists that the seed has made since this start
}

// newOffice makes the office, and adds what the seed holds.
func (n *Node) newOffice(ctx context.Context) (*office, error) {
	if err := n.secrets.take(&n.cfg.Secrets); err != nil {
		return nil, err
	}
	books := notify.NewDirectoryCache(n.kept.Directory)
	ingester := &notify.Ingester{Store: n.store, Directory: books, Logger: n.log}
	o := &office{
		books:    books,
		ingester: ingester,
		desk:     &notify.Intake{Ingester: ingester, Site: n.cfg.Source()},
		channels: &notify.Channels{
			Store: n.store, Directory: books, Dispatcher: n.site.Dispatcher(), Kinds: n.secrets.kinds(n.secrets.mayUse, n.log),
			Poll: n.cfg.Notifications.Poll, Answers: &n.answers, Logger: n.log,
		},
		sweeper: &notify.Sweeper{Store: n.store, Keep: n.cfg.Notifications.Retention, Every: n.cfg.Notifications.Sweep, Logger: n.log},
	}
	if n.cfg.Notifications.Seed != "" {
		if err := n.sow(ctx, o, n.cfg.Notifications.Seed); err != nil {
			return nil, err
		}
	}
	return o, n.lookAtChannels(ctx)
}

// lookAtChannels logs the channels that will be held at their next delivery, for example because a binding
// has become narrower since they were stored.
func (n *Node) lookAtChannels(ctx context.Context) error {
	book, err := n.kept.Directory.Directory(ctx)
	if err != nil {
		return err
	}
	check := &notify.Channels{Kinds: n.secrets.kinds(n.secrets.mayUse, slog.New(slog.DiscardHandler))}
	for _, name := range slices.Sorted(maps.Keys(book.Channels)) {
		if err := check.Check(book.Channels[name]); err != nil {
			n.log.WarnContext(ctx, "the settings of a channel do not work", slog.String("channel", name), slog.Any("error", err))
		}
	}
	return nil
}
