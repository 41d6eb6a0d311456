package main

import (
	"context"
	"fmt"
	"strings"
	"time"

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
	var since time.Duration
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"},
		Short: "List calls of sites, the newest first",
		Example: `  holdfast calls ls --status parked
  holdfast calls ls --site plant-7 --since 24h --error timeout`,
		Args: args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if since > 0 {
				q.From = time.Now().Add(-since)
			}
			return a.ask(cmd, g, func(ctx context.Context, c *client.Client) error {
				p, err := c.SiteCalls().List(ctx, &q)
				switch {
				case err != nil:
					return err
				case g.json:
					return printJSON(a.stdout, p)
				}
				rows := make([][]string, len(p.Calls))
				for i, c := range p.Calls {
					rows[i] = []string{c.Site, c.ID, c.Destination, c.Status, fmt.Sprint(c.Retries), at(c.Created), c.LastError}
				}
				if err := table(a.stdout, []string{"SITE", "ID", "DESTINATION", "STATUS", "RETRIES", "CREATED", "ERROR"}, rows); err != nil {
					return err
				}
				if p.Next != "" {
					a.note("more: --after %s\n", p.Next)
				}
				return nil
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&q.Site, "site", "", "only this site")
	f.StringVar(&q.Node, "node", "", "only this node")
	f.StringSliceVar(&q.Statuses, "status", nil, "only these statuses: submitted, retrying, delivered, parked, failed, discarded, expired")
	f.StringVar(&q.Destination, "destination", "", "only this destination")
	f.StringVar(&q.Category, "category", "", "only this category")
	f.StringVar(&q.Error, "error", "", "only calls whose last error has this text")
	f.DurationVar(&since, "since", 0, "only calls of this last time, such as 24h")
	f.IntVar(&q.Limit, "limit", 50, "calls per page, 1 to 500")
	f.StringVar(&q.After, "after", "", "begin after this position, which the previous page gave")
	return cmd
}

func (a *app) callShow(g *global) *cobra.Command {
	return &cobra.Command{
		Use:     "show SITE ID",
		Short:   "Show how a call of a site stands, as the site said last",
		Example: `  holdfast calls show plant-7 0190c5a2-7b1e-7c3d-9a4f-1d2e3f405162`,
		Args:    args(2, 2, "the site's name and the operation's id"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return a.ask(cmd, g, func(ctx context.Context, c *client.Client) error {
				s, err := c.SiteCalls().Get(ctx, given[0], given[1])
				switch {
				case err != nil:
					return err
				case g.json:
					return printJSON(a.stdout, s)
				}
				return a.printCall(&s)
			})
		},
	}
}

func (a *app) printCall(s *api.SiteCall) error {
	var b strings.Builder
	for _, line := range [][2]string{
		{"site", s.Site},
		{"id", s.ID},
		{"node", s.Node},
		{"category", s.Category},
		{"destination", s.Destination},
		{"endpoint", s.Endpoint},
		{"status", s.Status},
		{"retries", fmt.Sprint(s.Retries)},
		{"last error", s.LastError},
		{"instance", s.Instance},
		{"script", s.Script},
		{"execution", s.Execution},
		{"created", at(s.Created)},
		{"last attempt", optional(s.LastAttempt)},
		{"ended", optional(s.Ended)},
		{"seen", at(s.Seen)},
	} {
		if line[1] != "" {
			fmt.Fprintf(&b, "%-13s %s\n", line[0], line[1])
		}
	}
	_, err := fmt.Fprint(a.stdout, b.String())
	return err
}

func (a *app) callCounts(g *global) *cobra.Command {
	return &cobra.Command{
		Use:     "kpis",
		Short:   "Count the calls of sites that have not ended, by site and node",
		Example: `  holdfast calls kpis --json`,
		Args:    args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.ask(cmd, g, func(ctx context.Context, c *client.Client) error {
				n, err := c.SiteCalls().Counts(ctx)
				switch {
				case err != nil:
					return err
				case g.json:
					return printJSON(a.stdout, n)
				}
				rows := make([][]string, len(n.Counts))
				for i, c := range n.Counts {
					rows[i] = []string{c.Site, c.Node, fmt.Sprint(c.Waiting), fmt.Sprint(c.Retrying), fmt.Sprint(c.Parked), fmt.Sprint(c.Stuck)}
				}
				return table(a.stdout, []string{"SITE", "NODE", "WAITING", "RETRYING", "PARKED", "STUCK"}, rows)
			})
		},
	}
}
