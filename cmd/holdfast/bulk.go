package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
)

func (a *app) bulkCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bulk",
		Short: "Do one thing to all that a filter finds",
		Long: `Retry, discard, run or reschedule all messages or notifications that a filter finds,
or send all its events again.
The node takes a snapshot of what it finds, and does the rows by itself: this command
need not wait, and the node goes on after a restart.`,
		Args: cobra.ArbitraryArgs, RunE: group,
	}
	cmd.AddCommand(
		a.bulkRun(g), a.bulkList(g), a.bulkShow(g),
		a.bulkMove(g, "pause", "Hold bulk actions until they are resumed", client.Bulk.Pause),
		a.bulkMove(g, "resume", "Let paused bulk actions go on", client.Bulk.Resume),
		a.bulkMove(g, "cancel", "End bulk actions; what is done stays done", client.Bulk.Cancel),
	)
	return cmd
}

func (a *app) bulkRun(g *global) *cobra.Command {
	var req api.BulkRequest
	var when between
	cmd := &cobra.Command{
		Use:   "run LIST VERB",
		Short: "Do a verb to all of a list that the flags find",
		Long: `Do a verb, retry, discard, run or reschedule, to all of a list, messages or
notifications, that the flags find. Without --status it is all from which the verb
starts. The verb of events is resend. --dry-run counts them, and does nothing.`,
		Example: `  holdfast bulk run messages retry --destination inventory --dry-run
  holdfast bulk run messages retry --status parked --rate 20
  holdfast bulk run messages discard --cause 3f0a1c52e97b4d08
  holdfast bulk run notifications discard --list ops --until 2026-11-29
  holdfast bulk run events resend --topic orders --since 2026-11-28 --until 2026-11-29`,
		Args: args(2, 2, "messages, notifications or events, and retry, discard, run, reschedule or resend"),
		RunE: func(cmd *cobra.Command, given []string) error {
			req.List, req.Verb = given[0], given[1]
			from, to, err := when.read()
			if err != nil {
				return err
			}
			req.Filter.From, req.Filter.To = exact(from), exact(to)
			return show(a, cmd, g, func(ctx context.Context, c *client.Client) (api.Bulk, error) { return c.Bulk().Add(ctx, &req) }, bulkText)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&req.Filter.Status, "status", nil, "only these states of messages, or statuses of notifications")
	f.StringVar(&req.Filter.Destination, "destination", "", "of messages: only to this destination")
	f.StringVar(&req.Filter.Category, "category", "", "of messages: only of this category")
	f.StringVar(&req.Filter.Cause, "cause", "", "of messages: only of this cause, as messages causes names it, that did not fail again since then")
	f.StringVar(&req.Filter.Code, "code", "", "of messages: only those whose last error has this code")
	f.StringVar(&req.Filter.Error, "error", "", "of messages: only those whose last error contains all these words")
	f.StringVar(&req.Filter.List, "list", "", "of notifications: only to this list")
	f.StringVar(&req.Filter.Type, "type", "", "of notifications: only of this type")
	f.StringVar(&req.Filter.Site, "site", "", "of notifications: only from this site")
	f.StringVar(&req.Filter.Subject, "subject", "", "of notifications: only with these words in the subject")
	when.flags(f, "notifications or events that came")
	f.StringVar(&req.Filter.Topic, "topic", "", "of events: only of this topic")
	f.StringVar(&req.Subscription, "subscription", "", "of events: only to this subscription")
	f.BoolVar(&req.MatchNow, "match-now", false, "of events: to those that each is for now, in place of those that it was for when it came")
	f.StringVar(&req.Channel, "channel", "", "of notifications: only the copies over this channel")
	f.BoolVar(&req.Force, "force", false, "of retry: send messages even if the receiver may have forgotten the id and might do it a second time")
	f.StringVar(&req.In, "in", "", "of reschedule: how long from now: 90s, 2h, 1d")
	f.StringVar(&req.At, "at", "", "of reschedule: when, as an instant: 2026-11-30T06:00:00Z")
	f.Int64Var(&req.First, "first", 0, "only so many, the newest; 0: all")
	f.Int64Var(&req.Rate, "rate", 0, "so many a second at most; 0: as fast as it goes")
	f.StringVar(&req.Reason, "reason", "", "why, in one line; it is kept with the action")
	f.BoolVar(&req.Paused, "paused", false, "begin when it is resumed")
	f.BoolVar(&req.DryRun, "dry-run", false, "only count what the flags find")
	return cmd
}

func bulkText(w io.Writer, b *api.Bulk) error {
	s := newSheet(w)
	s.line("id", b.ID)
	s.line("action", b.Verb+" "+b.List)
	s.line("state", b.State)
	s.line("found", fmt.Sprint(b.Total))
	if b.ID != "" {
		s.line("done", fmt.Sprint(b.Done))
		s.line("refused", fmt.Sprint(b.Refused))
		s.line("actor", b.Actor)
		s.when("created", b.Created)
		s.when("ended", b.Ended)
	}
	for _, c := range b.Counts {
		s.line(c.Of+", "+c.Status, fmt.Sprint(c.Count))
	}
	return s.end()
}

func (a *app) bulkList(g *global) *cobra.Command {
	var after string
	var limit int
	var all bool
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"},
		Short:   "List bulk actions, the newest first",
		Example: `  holdfast bulk ls --all`,
		Args:    args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return pages(a, cmd, g, after, all, func(ctx context.Context, c *client.Client, after string) (api.BulkPage, string, error) {
				page, err := c.Bulk().List(ctx, after, limit)
				return page, page.Next, err
			}, func(w io.Writer, page *api.BulkPage, _ bool) error {
				return listing(w, []string{"ID", "ACTION", "STATE", "FOUND", "DONE", "REFUSED", "ACTOR"}, page.Actions, func(b *api.Bulk) []string {
					return []string{b.ID, b.Verb + " " + b.List, b.State, fmt.Sprint(b.Total), fmt.Sprint(b.Done), fmt.Sprint(b.Refused), b.Actor}
				})
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 50, "actions per page, 1 to 500")
	cmd.Flags().StringVar(&after, "after", "", "begin after this position, which the previous page gave")
	cmd.Flags().BoolVar(&all, "all", false, "follow the pages to the end")
	return cmd
}

func (a *app) bulkShow(g *global) *cobra.Command {
	var rows bool
	cmd := &cobra.Command{
		Use:     "show ID",
		Short:   "Show how far a bulk action is, and what became of its rows",
		Example: `  holdfast bulk show --rows 0190c5a2-7b1e-7c3d-9a4f-1d2e3f405162`,
		Args:    args(1, 1, "the id of a bulk action"),
		RunE: func(cmd *cobra.Command, given []string) error {
			if rows {
				return a.bulkRows(cmd, g, given[0])
			}
			return show(a, cmd, g, func(ctx context.Context, c *client.Client) (api.Bulk, error) { return c.Bulk().Get(ctx, given[0]) }, bulkText)
		},
	}
	cmd.Flags().BoolVar(&rows, "rows", false, "list all rows instead")
	return cmd
}

func (a *app) bulkRows(cmd *cobra.Command, g *global, id string) error {
	return pages(a, cmd, g, 0, true, func(ctx context.Context, c *client.Client, after int64) (api.BulkRowPage, int64, error) {
		page, err := c.Bulk().Rows(ctx, id, after, 1000)
		return page, page.Next, err
	}, func(w io.Writer, page *api.BulkRowPage, _ bool) error {
		return listing(w, []string{"ROW", "ITEM", "OUTCOME", "WHY"}, page.Rows, func(r *api.BulkRow) []string {
			return []string{fmt.Sprint(r.Seq), r.Item, r.Outcome, r.Detail}
		})
	})
}

func (a *app) bulkMove(g *global, name, short string, move func(b client.Bulk, ctx context.Context, id string) (api.Bulk, error)) *cobra.Command {
	return &cobra.Command{
		Use: name + " ID...", Short: short,
		Example: "  holdfast bulk " + name + " 0190c5a2-7b1e-7c3d-9a4f-1d2e3f405162",
		Args:    args(1, -1, "the ids of bulk actions"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return a.each(cmd, g, given, "an id is empty", func(ctx context.Context, c *client.Client, id string) error {
				b, err := move(c.Bulk(), ctx, id)
				switch {
				case err != nil:
					return err
				case g.json:
					return printJSON(a.stdout, b)
				}
				_, err = fmt.Fprintf(a.stdout, "%s is %s\n", b.ID, b.State)
				return err
			})
		},
	}
}
