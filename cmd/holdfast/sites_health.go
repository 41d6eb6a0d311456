package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
)

func (a *app) siteHealth(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "health [SITE]",
		Short: "Show the last report of each site, or all of one, with its age",
		Long: `Show how each site fares, in a table. With a site, show the last report of each node of a site, with its age: what waits and is parked
by category, how far the link and the followers of the journal are behind, disk and clock.
Central keeps it, also while the site is away.`,
		Example: `  holdfast sites health
  holdfast sites health plant-7`,
		Args: args(0, 1, "a site's name, or none"),
		RunE: func(cmd *cobra.Command, given []string) error {
			if len(given) == 0 {
				return a.allSites(cmd, g, []string{"NAME", "STATE", "REPORTED", "STATUS", "PENDING", "PARKED", "OLDEST"}, healthRow)
			}
			return show(a, cmd, g, func(ctx context.Context, c *client.Client) (api.Site, error) {
				return c.Sites().Get(ctx, given[0])
			}, func(w io.Writer, s *api.Site) error {
				rows := [][]string{{s.Name, s.State, silence(s)}}
				for i := range s.Nodes {
					rows = append(rows, nodeRows(&s.Nodes[i])...)
				}
				return table(w, []string{"WHAT", "STATE", "SINCE"}, rows)
			})
		},
	}
}

// healthRow leaves out what a site has not reported.
func healthRow(s *api.Site) []string {
	if s.ReportMs == nil {
		return []string{s.Name, s.State, "-", "-", "-", "-", "-"}
	}
	return []string{s.Name, s.State, past(*s.ReportMs), s.Status, fmt.Sprint(s.Pending), fmt.Sprint(s.Parked), lasting(s.OldestMs)}
}

// nodeRows tells a report in rows of what, value and age.
func nodeRows(n *api.SiteNode) (rows [][]string) {
	add := func(what, value, since string) { rows = append(rows, []string{what, value, since}) }
	add("node "+n.Node, strings.TrimSpace(strings.Join([]string{n.Status, n.Role, n.Version}, " ")), "reported "+past(n.ReportMs))
	if len(n.Problems) > 0 {
		add("problems", strings.Join(n.Problems, ", "), "")
	}
	add("waiting", fmt.Sprintf("%d pending, %d parked", n.Pending, n.Parked), lasting(n.OldestMs))
	for _, c := range n.Categories {
		name := c.Category
		if name == "" {
			name = "nodes"
		}
		add("of "+name, fmt.Sprintf("%d pending, %d parked", c.Pending, c.Parked), lasting(c.OldestMs))
	}
	add("for central", "due", lasting(n.LagMs))
	if n.Unsent > 0 {
		add("audit log", fmt.Sprintf("%d not sent", n.Unsent), lasting(n.UnsentMs))
	}
	if n.AuditFault != "" {
		add("audit log", n.AuditFault, "")
	}
	if n.StalledMs > 0 {
		add("link", "stalled", lasting(n.StalledMs))
	}
	for _, f := range n.Followers {
		add("follower "+f.Name, "behind", lasting(f.BehindMs))
	}
	if n.DiskFree > 0 || n.DiskFull {
		add("disk", fmt.Sprintf("%d MiB free, full %t", n.DiskFree>>20, n.DiskFull), "")
	}
	if n.DoubtedMs > 0 {
		add("clock", fmt.Sprintf("doubted, %d held", n.Held), lasting(n.DoubtedMs))
	}
	return rows
}

func lasting(ms int64) string {
	if ms == 0 {
		return "-"
	}
	return (time.Duration(ms) * time.Millisecond).Round(time.Second).String()
}

func past(ms int64) string {
	return (time.Duration(ms) * time.Millisecond).Round(time.Second).String() + " ago"
}

// silence tells when a site was last heard.
func silence(s *api.Site) string {
	if s.LastSeen == nil {
		return "-"
	}
	return past(s.SilentMs)
}
