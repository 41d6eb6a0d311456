package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
)

func (a *app) callsCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{
		Use: "calls", Aliases: []string{"call"},
		Short: "Look at the calls of all sites, and decide about them",
		Long: `Look at what sites have told central of their calls of foreign systems and
writes into databases. Central delivers none of them: a decision is relayed to the
site, which answers.`,
		Args: cobra.ArbitraryArgs, RunE: group,
	}
	cmd.AddCommand(a.callList(g), a.callShow(g), a.callCounts(g))
	cmd.AddCommand(a.decisions(g, "calls", of)...)
	return cmd
}

func (a *app) callList(g *global) *cobra.Command {
	var q client.SiteCallQuery
	var when between
	var all bool
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"},
		Short: "List calls of sites, the newest first",
		Long: `List calls of sites, the newest first. A page looks at a bounded number of rows: it may
be short or empty and still have a next one. --all follows the pages to the end.`,
		Example: `  holdfast calls ls --status parked
  holdfast calls ls --site plant-7 --since 24h --error timeout`,
		Args: args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if q.From, q.To, err = when.read(); err != nil {
				return err
			}
			return a.listCalls(cmd, g, q, all)
		},
	}
	f := cmd.Flags()
	f.StringVar(&q.Site, "site", "", "only this site")
	f.StringVar(&q.Node, "node", "", "only this node")
	f.StringSliceVar(&q.Statuses, "status", nil, "only these statuses: submitted, retrying, delivered, parked, failed, discarded, expired")
	f.StringVar(&q.Destination, "destination", "", "only this destination")
	f.StringVar(&q.Category, "category", "", "only this category")
	f.StringVar(&q.Error, "error", "", "only calls whose last error has this text, in any case")
	when.flags(f, "calls that were made")
	f.IntVar(&q.Limit, "limit", 50, "calls per page, 1 to 500")
	f.StringVar(&q.After, "after", "", "begin after this position, which the previous page gave")
	f.BoolVar(&all, "all", false, "follow the pages to the end")
	return cmd
}

func (a *app) listCalls(cmd *cobra.Command, g *global, q client.SiteCallQuery, all bool) error {
	return pages(a, cmd, g, q.After, all, func(ctx context.Context, c *client.Client, after string) (api.SiteCallPage, string, error) {
		q.After = after
		page, err := c.SiteCalls().List(ctx, &q)
		return page, page.Next, err
	}, func(w io.Writer, page *api.SiteCallPage, _ bool) error {
		return listing(w, []string{"SITE", "ID", "DESTINATION", "STATUS", "RETRIES", "CREATED", "LAST ERROR"}, page.Calls, func(c *api.SiteCall) []string {
			return []string{c.Site, c.ID, c.Destination, c.Status, fmt.Sprint(c.Retries), at(c.Created), c.LastError}
		})
	})
}

func (a *app) callShow(g *global) *cobra.Command {
	return &cobra.Command{
		Use:     "show SITE ID",
		Short:   "Show how a call of a site stands, as the site said last",
		Example: `  holdfast calls show plant-7 0190c5a2-7b1e-7c3d-9a4f-1d2e3f405162`,
		Args:    args(2, 2, "the site's name and the operation's id"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return show(a, cmd, g, func(ctx context.Context, c *client.Client) (api.SiteCall, error) {
				return c.SiteCalls().Get(ctx, given[0], given[1])
			}, printCall)
		},
	}
}

func printCall(w io.Writer, c *api.SiteCall) error {
	s := newSheet(w)
	s.line("site", c.Site)
	s.line("id", c.ID)
	s.line("node", c.Node)
	s.line("category", c.Category)
	s.line("destination", c.Destination)
	s.line("endpoint", c.Endpoint)
	s.line("status", c.Status)
	s.line("retries", fmt.Sprint(c.Retries))
	s.line("last error", c.LastError)
	s.line("instance", c.Instance)
	s.line("script", c.Script)
	s.line("execution", c.Execution)
	s.line("created", at(c.Created))
	s.when("last attempt", c.LastAttempt)
	s.when("ended", c.Ended)
	s.line("seen", at(c.Seen))
	return s.end()
}

func (a *app) callCounts(g *global) *cobra.Command {
	return &cobra.Command{
		Use:     "kpis",
		Short:   "Count the calls of sites that have not ended, by site and node",
		Example: `  holdfast calls kpis --json`,
		Args:    args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return show(a, cmd, g, func(ctx context.Context, c *client.Client) (api.SiteCallCounts, error) {
				return c.SiteCalls().Counts(ctx)
			}, func(w io.Writer, n *api.SiteCallCounts) error {
				return listing(w, []string{"SITE", "NODE", "WAITING", "RETRYING", "PARKED", "STUCK"}, n.Counts, func(c *api.SiteCallCount) []string {
					return []string{c.Site, c.Node, fmt.Sprint(c.Waiting), fmt.Sprint(c.Retrying), fmt.Sprint(c.Parked), fmt.Sprint(c.Stuck)}
				})
			})
		},
	}
}
