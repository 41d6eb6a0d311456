package node

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/config"
)

// openStore opens the configured store. Only this function knows which kinds of stores exist.
func openStore(ctx context.Context, c *config.Config, o holdfast.Observer, log *slog.Logger) (store, special, error) {
	if c.Store.IsZero() {
		return openFile(ctx, c, o, log)
	}
	return openPostgres(ctx, c, o, log)
}

// startPause is how long a start waits before it tries its database again.
const startPause = time.Second

// openWaiting opens the store. It waits for a database that may come back by itself, and logs the reason: it
// is away, starts, is a standby, takes no writes or no connection, or its commits hang. A fault that a person
// must fix ends the start, with its own exit code. Meanwhile the node answers that it waits.
func (n *Node) openWaiting(ctx context.Context) (store, special, error) {
	told := ""
	if !n.cfg.Store.IsZero() {
		defer time.AfterFunc(startPause, n.front.begin).Stop()
	}
	for {
		opened, kind, err := openStore(ctx, n.cfg, late{n}, n.log)
		switch {
		case err == nil, n.cfg.Store.IsZero():
			return opened, kind, err
		case ctx.Err() != nil:
			return nil, special{}, ctx.Err()
		case Why(err) != Unexplained || !isAway(err) && !errors.Is(err, holdfast.ErrUnknown):
			return nil, special{}, err
		}
		if text := err.Error(); text != told {
			told = text
			n.log.WarnContext(ctx, "the start waits for the database", slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
		case <-time.After(startPause):
		}
	}
}

// late is the store's observer. It passes calls on once the metrics exist.
type late struct{ n *Node }

func (l late) ObserveAttempt(a holdfast.AttemptInfo) {
	if m := l.n.metrics; m != nil {
		m.ObserveAttempt(a)
	}
}

func (l late) ObserveExpired(count int) {
	if m := l.n.metrics; m != nil {
		m.ObserveExpired(count)
	}
}

func (l late) ObserveReceived(r holdfast.ReceivedInfo) {
	if m := l.n.metrics; m != nil {
		m.ObserveReceived(r)
	}
}
