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

// notifications holds the commands about notifications, at central.
type notifications struct {
	*app
	*global
}

func (a *app) notificationsCommand(g *global) *cobra.Command {
	n := &notifications{a, g}
	cmd := &cobra.Command{
		Use: "notifications", Aliases: []string{"notification"},
		Short: "List and show notifications, decide about them, and count them",
		Args:  cobra.ArbitraryArgs, RunE: group,
	}
	cmd.AddCommand(n.list(), n.show(), n.retry(), n.discard(), n.run(), n.reschedule(), n.kpis())
	return cmd
}

type notificationFlags struct {
	q          client.NotificationQuery
	between    between
	all, quiet bool
}

func (n *notifications) list() *cobra.Command {
	var f notificationFlags
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"},
		Short: "List notifications, newest first",
		Long: `List notifications, newest first. A notification that goes over several channels has
a line for each of them.`,
		Example: `  holdfast notifications ls --status parked,retrying
  holdfast notifications ls --site plant-7 --since 24h --subject 'pump hot'
  holdfast notifications ls --id alarm-42
  holdfast notifications ls --status parked --channel mail --all -q | xargs holdfast notifications retry --channel mail`,
		Args: args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if f.q.From, f.q.To, err = f.between.read(); err != nil {
				return err
			}
			return n.pages(cmd, f)
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&f.q.Statuses, "status", nil, "only these statuses: pending, retrying, delivered, parked, discarded")
	flags.StringVar(&f.q.ID, "id", "", "only with this id, of every site that has sent it")
	flags.StringVar(&f.q.Channel, "channel", "", "only over this channel")
	flags.StringVar(&f.q.List, "list", "", "only to this list")
	flags.StringVar(&f.q.Type, "type", "", "only of this type")
	flags.StringVar(&f.q.Site, "site", "", "only from this site")
	flags.StringVar(&f.q.Script, "script", "", "only from this script")
	f.between.flags(flags, "those that came")
	flags.StringVar(&f.q.Subject, "subject", "", "only with all these words in the subject")
	flags.BoolVar(&f.q.Stuck, "stuck", false, "only those that have waited longer than usual")
	flags.IntVar(&f.q.Limit, "limit", 50, "lines per page, 1 to 500")
	flags.StringVar(&f.q.After, "after", "", "begin after this position, which the previous page gave")
	flags.BoolVar(&f.all, "all", false, "follow the pages to the end")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print notification ids only, oldest first")
	return cmd
}

func (n *notifications) pages(cmd *cobra.Command, f notificationFlags) error {
	var ids []string
	var last api.Notification
	return pages(n.app, cmd, n.global, f.q.After, f.all, func(ctx context.Context, c *client.Client, after string) (api.NotificationPage, string, error) {
		f.q.After = after
		page, err := c.Notifications().List(ctx, f.q)
		return page, page.Next, err
	}, func(w io.Writer, page *api.NotificationPage, end bool) error {
		if !f.quiet {
			err := listing(w, []string{"ID", "STATUS", "CHANNEL", "LIST", "SITE", "TRIES", "CREATED", "SUBJECT", "LAST ERROR"}, page.Notifications, notificationRow)
			n.looked(err, page.LookedUntil, f.all)
			return err
		}
		for _, x := range page.Notifications {
			if x.ID != "" && (x.ID != last.ID || x.Site != last.Site) { // a notification that goes over several channels counts once
				ids = append(ids, x.ID)
			}
			last = x
		}
		return printIDs(w, ids, end)
	})
}

func notificationRow(x *api.Notification) []string {
	return []string{x.ID, copyState(x.CopyStatus), x.Channel, x.List, x.Site, fmt.Sprint(x.Tries), at(x.Created), x.Subject, x.LastError}
}

// copyState returns the status, with marks that matter to a person.
func copyState(c api.CopyStatus) string {
	switch {
	case c.Stuck:
		return c.Status + " (stuck)"
	case c.Status == "parked" && c.Reason != "":
		return c.Status + " (" + c.Reason + ")"
	}
	return c.Status
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return plain(s)
}

func (n *notifications) kpis() *cobra.Command {
	return &cobra.Command{
		Use:   "kpis",
		Short: "Count notifications: waiting, stuck, parked, delivered just now; for all sites and for each",
		Example: `  holdfast notifications kpis
  holdfast notifications kpis --json`,
		Args: args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return show(n.app, cmd, n.global, func(ctx context.Context, c *client.Client) (api.NotificationKPIs, error) {
				return c.Notifications().KPIs(ctx)
			}, func(w io.Writer, k *api.NotificationKPIs) error {
				rows := [][]string{kpiRow("all", k.All)}
				for _, s := range k.Sites {
					rows = append(rows, kpiRow(orDash(s.Site), s))
				}
				return table(w, []string{"SITE", "WAITING", "STUCK (" + k.StuckAfter + ")", "PARKED", "DELIVERED (" + k.Window + ")", "OLDEST"}, rows)
			})
		},
	}
}

func kpiRow(name string, k api.KPIs) []string {
	oldest := "-"
	if k.OldestSeconds > 0 {
		oldest = (time.Duration(k.OldestSeconds) * time.Second).String()
	}
	return []string{name, fmt.Sprint(k.Depth), fmt.Sprint(k.Stuck), fmt.Sprint(k.Parked), fmt.Sprint(k.Delivered), oldest}
}
