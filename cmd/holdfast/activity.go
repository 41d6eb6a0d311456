package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
)

func (a *app) activityCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "activity",
		Short: "See what happened to messages, and who did what about them",
		Args:  cobra.ArbitraryArgs, RunE: group,
	}
	cmd.AddCommand(a.activityList(g))
	return cmd
}

func (a *app) activityList(g *global) *cobra.Command {
	var q client.ActivityQuery
	var when between
	var all, follow bool
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"},
		Short: "List activities, newest first, or follow them",
		Long: `List what happened to messages, newest first: queued, delivered, retried and
parked, and what people did: retry and discard. With --follow print what happens
from now on, until the command is ended with Ctrl-C; it connects again by itself
when the node was away, and says how many lines it missed if it was too slow.`,
		Example: `  holdfast activity ls --kind parked --since 24h
  holdfast activity ls --message order-42
  holdfast activity ls --follow --destination inventory`,
		Args: args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if q.Since, q.Until, err = when.read(); err != nil {
				return err
			}
			if follow && (all || when.until != "") {
				return usage(errors.New("--follow excludes --all and --until"))
			}
			if follow {
				return a.followActivity(cmd, g, q)
			}
			return a.listActivity(cmd, g, q, all)
		},
	}
	f := cmd.Flags()
	f.StringVar(&q.Kind, "kind", "", "only this kind: queued, delivered, retried, parked, retry, discard or disabled")
	f.StringVar(&q.Destination, "destination", "", "only this destination")
	f.StringVar(&q.Message, "message", "", "only the message with this id")
	f.StringVar(&q.Actor, "actor", "", "only what this person or token did")
	when.flags(f, "what happened")
	f.IntVar(&q.Limit, "limit", 50, "activities per page, 1 to 200")
	f.Int64Var(&q.After, "after", 0, "begin after this position, which the previous page gave; with --follow: after this activity")
	f.BoolVar(&all, "all", false, "follow the pages to the end")
	f.BoolVarP(&follow, "follow", "f", false, "print what happens from now on")
	return cmd
}

func (a *app) listActivity(cmd *cobra.Command, g *global, q client.ActivityQuery, all bool) error {
	return pages(a, cmd, g, q.After, all, func(ctx context.Context, c *client.Client, after int64) (api.ActivityPage, int64, error) {
		q.After = after
		page, err := c.Activity().List(ctx, q)
		return page, page.Next, err
	}, func(w io.Writer, page *api.ActivityPage, _ bool) error {
		return listing(w, []string{"AT", "KIND", "DESTINATION", "MESSAGE", "BY", "WHY"}, page.Activities, activityRow)
	})
}

func activityRow(v *api.Activity) []string {
	var why []string
	for _, part := range []string{v.Reason, v.Code, v.Error} {
		if part != "" {
			why = append(why, part)
		}
	}
	return []string{at(v.At), v.Kind, v.Destination, v.Message, v.Actor, strings.Join(why, ": ")}
}

// again is how long a follower waits until it connects again.
const again = 2 * time.Second

// followActivity prints activities until it is told to stop. What happens while the node is away is printed when
// it is back.
func (a *app) followActivity(cmd *cobra.Command, g *global, q client.ActivityQuery) error {
	c, err := a.client(cmd, g)
	if err != nil {
		return err
	}
	ctx, last, told := cmd.Context(), int64(-1), false
	if q.After > 0 {
		last = q.After
	}
	for {
		err := c.Activity().Follow(ctx, q, last, func(n api.ActivityNews) error {
			last, told = n.Last, false
			return a.printNews(g, &n)
		})
		var refused *api.Problem
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // whoever ended it is told nothing
		case errors.As(err, &refused) && refused.Status < 500 || errors.Is(err, errPrint) || last < 0 && errors.Is(err, client.ErrUnreachable):
			return err
		case !told:
			told = true
			a.note("the node is away: %v; going on when it is back\n", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(again):
		}
	}
}

// errPrint means that nobody reads what is printed.
var errPrint = errors.New("print")

func (a *app) printNews(g *global, n *api.ActivityNews) error {
	if n.Missed > 0 && !g.json {
		a.note("%d lines of the log were left out, because this command was too slow; list them with holdfast activity ls\n", n.Missed)
	}
	if g.json {
		if err := printJSON(a.stdout, n); err != nil {
			return fmt.Errorf("%w: %w", errPrint, err)
		}
		return nil
	}
	for i := range n.Activities {
		row := activityRow(&n.Activities[i])
		for i := range row {
			row[i] = oneLine(row[i])
		}
		if _, err := fmt.Fprintln(a.stdout, strings.TrimRight(strings.Join(row, "  "), " ")); err != nil {
			return fmt.Errorf("%w: %w", errPrint, err)
		}
	}
	return nil
}
