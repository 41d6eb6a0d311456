package node

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/holdfast-mq/holdfast/config"
)

// watchReload takes over what can change at run time, from each new configuration.
func (n *Node) watchReload(ctx context.Context) error {
	now := *n.cfg // the configuration in effect
	for {
		select {
		case <-ctx.Done():
			return nil
		case c := <-n.opts.Reload:
			n.reload(ctx, &now, c)
		}
	}
}

// reload logs for each setting that differs whether it takes effect now or at the next start.
func (n *Node) reload(ctx context.Context, now, c *config.Config) {
	log := n.lines.told
	log.InfoContext(ctx, "reloading")
	if c.Log.Level != now.Log.Level {
		now.Log.Level = c.Log.Level
		n.lines.setLevel(now.Log.Level)
		log.InfoContext(ctx, "reloaded", slog.String("setting", "log.level"), slog.String("value", string(c.Log.Level)))
	}
	n.readmit(ctx, now, c)
	n.rekey(ctx, now, c)
	n.renewals.renew(ctx, now, c, log)
	if c.Notifications.Seed != "" && c.Notifications.Seed == now.Notifications.Seed && n.role.sow != nil {
		if err := n.role.sow(ctx, c.Notifications.Seed); err != nil {
			log.ErrorContext(ctx, "not reloaded", slog.String("setting", "notifications.seed"), slog.Any("error", err))
		} else {
			log.InfoContext(ctx, "reloaded", slog.String("setting", "notifications.seed"))
		}
	}
	for _, setting := range now.Changes(c) {
		log.WarnContext(ctx, "not reloaded: it needs a restart", slog.String("setting", setting))
	}
	if a, err := access(ctx, n.store); err == nil {
		if what, _ := c.NoAdmin(a); what != "" {
			log.WarnContext(ctx, "nobody could operate a node of this configuration", slog.String("fault", what), slog.String("fix", c.FirstToken()))
		}
	}
	log.InfoContext(ctx, "reload ended")
}

// readmit takes over who may send, and their secrets. If nobody could send before, or nobody may any more,
// the receiver's routes change, which takes a restart.
func (n *Node) readmit(ctx context.Context, now, c *config.Config) {
	const setting = "receive.secrets"
	changed := slices.ContainsFunc(now.Changes(c), func(path string) bool { return strings.HasPrefix(path, setting) })
	if !changed || len(now.Receive.Sources) == 0 || len(c.Receive.Sources) == 0 {
		return
	}
	if err := n.admit(c.Receive.Sources); err != nil {
		n.lines.told.ErrorContext(ctx, "not reloaded", slog.String("setting", setting), slog.Any("error", err))
		return
	}
	now.Receive.Sources = c.Receive.Sources
	n.lines.told.InfoContext(ctx, "reloaded", slog.String("setting", setting))
}
