package node

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/postgres"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// SchemaStatus returns the schema of the configured store, 0 for none, and the schema of this release. It
// changes nothing.
func SchemaStatus(ctx context.Context, c *config.Config) (have, want int, err error) {
	if !c.Store.IsZero() {
		have, want, err = postgres.SchemaStatus(ctx, c.Store.DSN())
		return have, want, ofStore(c, err)
	}
	return sqlite.SchemaStatus(ctx, database(c.Data))
}

// Migrate brings the configured store up to the schema of this release, as the
// start of a node does.
func Migrate(ctx context.Context, c *config.Config, log *slog.Logger) (from, to int, err error) {
	if !c.Store.IsZero() {
		from, to, err = postgres.Migrate(ctx, c.Store.DSN())
		return from, to, ofStore(c, err)
	}
	return sqlite.Migrate(ctx, database(c.Data), fileOptions(c, nil, log))
}

// ofStore adds the database to an error.
func ofStore(c *config.Config, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("store %s: %w", c.Store, err)
}
