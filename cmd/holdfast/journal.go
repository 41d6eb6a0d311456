package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
)

func (a *app) journalCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "journal",
		Short: "List and forget the followers of the journal",
		Long: `List and forget the followers of the journal. The journal is kept until each of
them has read it: one that does not come back lets the database grow.`,
		Args: cobra.ArbitraryArgs, RunE: group,
	}
	cmd.AddCommand(a.followers(g), a.forget(g))
	return cmd
}

func (a *app) followers(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "ls", Aliases: []string{"list"},
		Short:   "List the followers of the journal",
		Example: `  holdfast journal ls --json`,
		Args:    args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return show(a, cmd, g, func(ctx context.Context, c *client.Client) (l api.FollowerList, err error) {
				l.Followers, err = c.Journal().Followers(ctx)
				return l, err
			}, func(w io.Writer, l *api.FollowerList) error {
				return listing(w, []string{"NAME", "RUNS HERE", "UNREAD SINCE"}, l.Followers, func(f *api.Follower) []string {
					running := "-"
					if f.Running {
						running = "yes"
					}
					return []string{f.Name, running, optional(f.Unread)}
				})
			})
		},
	}
}

func (a *app) forget(g *global) *cobra.Command {
	force := false
	cmd := &cobra.Command{
		Use:   "forget NAME",
		Short: "Forget a follower that does not come back",
		Long: `Forget a follower that does not come back: the journal is no longer kept for it,
and what it has not read is lost to it. One that runs in the node stays unless
--force is given.`,
		Example: `  holdfast journal forget reports`,
		Args:    args(1, 1, "the follower's name"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return a.ask(cmd, g, func(ctx context.Context, c *client.Client) error {
				if err := c.Journal().Forget(ctx, given[0], force); err != nil {
					return err
				}
				if g.json {
					return nil
				}
				_, err := fmt.Fprintf(a.stdout, "follower %s is forgotten\n", given[0])
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "forget even one that runs in the node; it ends")
	return cmd
}
