package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
)

func (a *app) causesCommand(g *global) *cobra.Command {
	q := client.CauseQuery{Within: 10 * time.Second}
	cmd := &cobra.Command{
		Use:   "causes",
		Short: "Group parked messages by why they are parked",
		Long: `Group parked messages by why they are parked, the most frequent cause first. Errors of
one destination and code are one cause if they differ in ids, numbers, addresses and
quoted words only. The newest 100,000 messages are looked at.`,
		Example: `  holdfast messages causes
  holdfast messages causes --destination inventory
  holdfast bulk run messages retry --cause 3f0a1c52e97b4d08 --dry-run`,
		Args: args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return show(a, cmd, g, func(ctx context.Context, c *client.Client) (api.CauseList, error) {
				return c.Messages().Causes(ctx, q)
			}, func(w io.Writer, list *api.CauseList) error {
				err := listing(w, []string{"CAUSE", "COUNT", "DESTINATION", "CODE", "FIRST", "LAST", "ERROR"}, list.Causes, func(c *api.Cause) []string {
					return []string{c.ID, fmt.Sprint(c.Count), c.Destination, c.Code, at(c.First), at(c.Last), c.Error}
				})
				a.looked(err, list.LookedUntil, false)
				if err == nil && list.More && list.LookedUntil.IsZero() {
					a.note("there may be more that were not looked at\n")
				}
				if err == nil && list.Others > 0 {
					a.note("%d messages have causes that are not listed\n", list.Others)
				}
				return err
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&q.Destination, "destination", "", "only this destination")
	f.StringVar(&q.Category, "category", "", "only destinations of this category")
	return cmd
}
