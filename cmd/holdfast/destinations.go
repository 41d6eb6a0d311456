package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
)

func (a *app) destinationsCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{
		Use: "destinations", Aliases: []string{"destination"},
		Short: "List, show, pause and resume destinations",
		Args:  cobra.ArbitraryArgs, RunE: group,
	}
	cmd.AddCommand(a.destinationsList(g), a.destinationShow(g), a.destinationPause(g), a.destinationResume(g))
	return cmd
}

func (a *app) destinationsList(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "ls", Aliases: []string{"list"},
		Short: "List destinations, and how they fare",
		Example: `  holdfast destinations ls
  holdfast destinations ls --json`,
		Args: args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return show(a, cmd, g, func(ctx context.Context, c *client.Client) (all api.DestinationList, err error) {
				all.Destinations, err = c.Destinations().List(ctx)
				return all, err
			}, func(w io.Writer, all *api.DestinationList) error {
				return listing(w, []string{"NAME", "LANE", "PENDING", "PARKED", "IN FLIGHT", "NO PROGRESS FOR", "REASON"}, all.Destinations, func(d *api.DestinationStatus) []string {
					return []string{d.Name, d.Lane, fmt.Sprint(d.Pending), fmt.Sprint(d.Parked), fmt.Sprint(d.InFlight), d.OldestDue, reasonOf(d)}
				})
			})
		},
	}
}

// reasonOf says in words why a destination does not deliver.
func reasonOf(d *api.DestinationStatus) string {
	switch {
	case d.Lane == "paused":
		return "paused by " + d.DecidedBy
	case !d.Configured:
		return "not in the configuration"
	}
	return d.Problem
}

func (a *app) destinationShow(g *global) *cobra.Command {
	return &cobra.Command{
		Use:     "show NAME",
		Short:   "Show a destination: what waits, how it fares, and when a message is tried",
		Example: `  holdfast destinations show inventory`,
		Args:    args(1, 1, "the destination's name"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return a.oneDestination(cmd, g, given[0], client.Destinations.Get)
		},
	}
}

func (a *app) destinationPause(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "pause NAME",
		Short: "Leave a destination alone until it is resumed",
		Long: `Leave a destination alone until it is resumed: no node of the store begins anything
more there, also after restarts. Attempts under way end; messages wait uncharged,
and their TTL runs on.`,
		Example: `  holdfast destinations pause inventory`,
		Args:    args(1, 1, "the destination's name"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return a.oneDestination(cmd, g, given[0], client.Destinations.Pause)
		},
	}
}

func (a *app) destinationResume(g *global) *cobra.Command {
	return &cobra.Command{
		Use:     "resume NAME",
		Short:   "Resume a destination that is paused, and try one that is held or down at once",
		Example: `  holdfast destinations resume inventory`,
		Args:    args(1, 1, "the destination's name"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return a.oneDestination(cmd, g, given[0], client.Destinations.Resume)
		},
	}
}

func (a *app) oneDestination(cmd *cobra.Command, g *global, name string, ask func(d client.Destinations, ctx context.Context, name string) (api.DestinationStatus, error)) error {
	return show(a, cmd, g, func(ctx context.Context, c *client.Client) (api.DestinationStatus, error) {
		return ask(c.Destinations(), ctx, name)
	}, printDestination)
}

func printDestination(w io.Writer, d *api.DestinationStatus) error {
	s := newSheet(w)
	s.line("name", d.Name)
	s.line("category", d.Category)
	s.line("lane", d.Lane)
	s.line("reason", reasonOf(d))
	s.line("no progress for", d.OldestDue)
	s.when("next probe", d.NextProbe)
	s.line("decided by", d.DecidedBy)
	s.when("decided", d.DecidedAt)
	s.line("waiting", fmt.Sprintf("%d pending, %d parked, %d expired", d.Pending, d.Parked, d.Expired))
	s.line("requests", fmt.Sprintf("%d in flight, %d may be", d.InFlight, d.Concurrency))
	s.line("ttl", d.TTL)
	for _, line := range d.Timetable {
		s.line("timetable", line)
	}
	return s.end()
}

func (a *app) statusCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show how a node fares, what waits, and what needs attention",
		Long: `Show how a node fares, what waits, and what needs attention. The exit code is 0 if
the node is ok or degraded, and 1 if it is failing.`,
		Example: `  holdfast status
  holdfast status --json`,
		Args: args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.ask(cmd, g, func(ctx context.Context, c *client.Client) error {
				h, err := c.Overview(ctx)
				switch {
				case err != nil:
					return err
				case g.json:
					err = printJSON(a.stdout, h)
				default:
					err = printStatus(a.stdout, &h)
				}
				if err == nil && h.Status == api.Failing {
					return verdict(exitFailure)
				}
				return err
			})
		},
	}
}

func printStatus(w io.Writer, h *api.Overview) error {
	sheet := newSheet(w)
	sheet.line("node", h.Node)
	sheet.line("role", h.Role)
	sheet.line("version", h.Version)
	sheet.when("started", &h.Started)
	sheet.line("status", h.Status)
	sheet.line("waiting", fmt.Sprintf("%d pending, %d parked", h.Pending, h.Parked))
	if s := h.Sites; s != nil {
		sheet.line("sites", fmt.Sprintf("%d online, %d offline, %d never seen", s.Online, s.Offline, s.Never))
	}
	if c := h.SiteCalls; c != nil {
		sheet.line("their calls", fmt.Sprintf("%d waiting, %d retrying, %d parked, %d stuck", c.Waiting, c.Retrying, c.Parked, c.Stuck))
	}
	if k := h.Notifications; k != nil {
		sheet.line("notifications", fmt.Sprintf("%d waiting, %d stuck, %d parked", k.Depth, k.Stuck, k.Parked))
	}
	if k := h.Audit; k != nil {
		sheet.line("audit", fmt.Sprintf("%d records in the last hour, %d of errors", k.Records, k.Errors))
	}
	for _, part := range h.Unknown {
		sheet.line(part, "could not be read now")
	}
	for _, c := range h.Checks {
		if c.Status != api.OK {
			sheet.line(c.Status, c.Name+": "+c.Detail)
		}
	}
	return sheet.end()
}
