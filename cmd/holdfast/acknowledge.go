package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin/client"
)

func (a *app) acknowledgeCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "acknowledge",
		Short: "Say that you know about the new history of the database",
		Long: `Say that you know that the PostgreSQL database of the nodes has another history,
as after a failover or a restore, and that you have handled what may be missing in
it. No node's health reports it any more. "holdfast status" shows what it is about.`,
		Example: `  holdfast status
  holdfast acknowledge`,
		Args: args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.ask(cmd, g, func(ctx context.Context, c *client.Client) error { return c.AcknowledgeHistory(ctx) })
		},
	}
}
