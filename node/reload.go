package node

import (
	"context"
	"log/slog"

	"github.com/holdfast-mq/holdfast/config"
)

// watchReload takes over what can be changed of each configuration that comes.
func (n *Node) watchReload(ctx context.Context) error {
	now := *n.cfg // what is in effect
	for {
		select {
		case <-ctx.Done():
			return nil
		case c := <-n.opts.Reload:
			n.reload(ctx, &now, c)
		}
	}
}

// reload says of each setting that differs whether it counts from now on, or
// from the next start on.
func (n *Node) reload(ctx context.Context, now, c *config.Config) {
	log := n.lines.told
	log.InfoContext(ctx, "reloading")
	if c.Log.Level != now.Log.Level {
		now.Log.Level = c.Log.Level
		n.lines.setLevel(now.Log.Level)
		log.InfoContext(ctx, "reloaded", slog.String("setting", "log.level"), slog.String("value", string(c.Log.Level)))
	}
	for _, setting := range now.Changes(c) {
		log.WarnContext(ctx, "not reloaded: it needs a restart", slog.String("setting", setting))
	}
	if a, err := n.access(ctx); err == nil {
		if what, _ := c.NoAdmin(a); what != "" {
			log.WarnContext(ctx, "nobody could operate a node of this configuration", slog.String("fault", what), slog.String("fix", c.FirstToken()))
		}
	}
	log.InfoContext(ctx, "reload ended")
}
