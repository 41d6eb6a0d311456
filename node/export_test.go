package node

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/link"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// AuthRequired asks as if the node listened on that address, without opening
// it: tests listen on the loopback only.
func AuthRequired(ctx context.Context, address net.Addr, db *sqlite.DB, tokens config.Tokens) (bool, error) {
	return authRequired(ctx, &config.Config{Listen: address.String(), Tokens: tokens, Data: "DATA"}, db, slog.New(slog.DiscardHandler))
}

// Backups runs the backups of a store until ctx ends. current is what the metrics show of them.
func Backups(ctx context.Context, db *sqlite.DB, folder string, conf config.Backup, log *slog.Logger) (health func() (string, string, string), current func() (time.Time, int64), ended <-chan error) {
	b := newBackups(db, folder, conf, log)
	done := make(chan error, 1)
	go func() { done <- b.run(ctx) }()
	return b.health, func() (at time.Time, size int64) {
		b.measured().Read(func(name string, value int64, _ ...string) {
			switch name {
			case "holdfast_backup_last_success_timestamp_seconds":
				at = time.Unix(value, 0)
			case "holdfast_backup_size_bytes":
				size = value
			}
		})
		return at, size
	}, done
}

// TooMany says which of the backups with these names are removed.
func TooMany(names []string, hourly, daily int) (remove []string) {
	var list []copied
	for _, name := range names {
		at, err := time.Parse(backupPrefix+backupStamp+backupSuffix, name)
		if err != nil {
			panic(err)
		}
		list = append(list, copied{path: name, at: at})
	}
	for _, c := range tooMany(list, hourly, daily) {
		remove = append(remove, c.path)
	}
	return remove
}

// Held is what a site keeps of what it has forwarded, on a disk that is full or not.
func Held(central *link.Site, full bool) map[string]time.Duration {
	n := &Node{cfg: &config.Config{}, special: special{full: func() bool { return full }}}
	return n.forward(central).Deliverer.(forwards).Held()
}

// Bounded is the stop of a node that does f.
func Bounded(ctx context.Context, c *config.Config, f func(a *notify.Answers) error) error {
	n := &Node{cfg: c, log: slog.New(slog.DiscardHandler), halt: newHalt(ctx)}
	defer n.halt.begin()
	n.state.Store(ready)
	return n.bounded(ctx, func(context.Context) error { return f(&n.answers) })
}

// Left is what a node that was told to stop says at its end of an error, once it has
// given up its database or not.
func Left(gaveUp bool, err error) error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	n := &Node{log: slog.New(slog.DiscardHandler), special: special{away: isAway}}
	n.gaveUp.Store(gaveUp)
	return n.leave(ctx, "what was in hand", err)
}

// Built is a node that is built, and of which nothing runs yet: what a node is for
// a moment at its start.
type Built struct {
	*Node
	Close func() error
}

// Build makes one.
func Build(ctx context.Context, c *config.Config, log io.Writer) (b Built, err error) {
	n := &Node{cfg: c, started: time.Now(), halt: newHalt(ctx), lines: newLogging(c.Log, log), secrets: &folder{conf: &c.Notifications}}
	n.log = n.lines.Logger
	if n.listener, err = listen(ctx, c.Listen); err != nil {
		return b, err
	}
	if err = n.buildFront(ctx); err != nil {
		return b, err
	}
	if n.store, n.special, err = openStore(ctx, c, late{n}, n.log); err != nil {
		return b, err
	}
	b = Built{n, func() error {
		defer n.lines.close()
		for _, c := range n.clients {
			c.Close()
		}
		return errors.Join(n.listener.Close(), n.store.Close())
	}}
	return b, n.build(ctx)
}

// Lanes are those that the node tells of.
func (b Built) Lanes() []holdfast.LaneStatus { return b.lanes() }

// RunChannels is the part that follows the channels.
func (b Built) RunChannels(ctx context.Context) error { return b.role.parts[0].Run(ctx) }

// RunDispatcher is the part that delivers to destinations.
func (b Built) RunDispatcher(ctx context.Context) error { return b.site.Run(ctx) }

// Look is the part that watches what makes no progress; Looked what it has seen.
func (b Built) Look(ctx context.Context) error   { return b.progress.Run(ctx) }
func (b Built) Looked() map[string]time.Duration { return b.progress.Oldest() }

// Health is what the node says of itself.
func (b Built) Health() api.Health { return b.health() }
