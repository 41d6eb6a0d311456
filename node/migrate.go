package node

import (
	"context"
	"log/slog"

	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// SchemaStatus tells which schema the configured store has, 0 for none, and
// which one this release has. It changes nothing.
func SchemaStatus(ctx context.Context, c *config.Config) (have, want int, err error) {
	return sqlite.SchemaStatus(ctx, database(c.Data))
}

// Migrate brings the configured store up to the schema of this release, as the
// start of a node does.
func Migrate(ctx context.Context, c *config.Config, log *slog.Logger) (from, to int, err error) {
	return sqlite.Migrate(ctx, database(c.Data), fileOptions(c, nil, log))
}
