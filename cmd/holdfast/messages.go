package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
)

func (a *app) messagesCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{
		Use: "messages", Aliases: []string{"message", "msg"},
		Short: "List and show messages, and decide about them: retry, discard, run now, reschedule",
		Args:  cobra.ArbitraryArgs, RunE: group,
	}
	cmd.AddCommand(a.listCommand(g), a.showCommand(g), a.causesCommand(g))
	cmd.AddCommand(a.decisions(g, "messages", nil)...)
	return cmd
}

func (a *app) listCommand(g *global) *cobra.Command {
	var q client.MessageQuery
	var when between
	var all, quiet bool
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"},
		Short: "List messages, newest first",
		Example: `  holdfast messages ls --state parked,expired
  holdfast messages ls --destination inventory --limit 500
  holdfast messages ls --category external-system --state parked
  holdfast messages ls --since 2h --error 'connection refused'
  holdfast messages ls --correlation run-4711
  holdfast messages ls --held
  holdfast messages ls --state parked --all -q | xargs holdfast messages retry`,
		Args: args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if q.From, q.To, err = when.read(); err != nil {
				return err
			}
			return a.listMessages(cmd, g, own, q, all, quiet)
		},
	}
	f := cmd.Flags()
	when.flags(f, "those that were accepted")
	searchFlags(f, &q)
	f.StringSliceVar(&q.States, "state", nil, "only these states: pending, claimed, delivered, parked, expired, discarded")
	f.StringVar(&q.Destination, "destination", "", "only this destination")
	f.StringVar(&q.Category, "category", "", "only destinations of this category, one after the other: external-system, cached-db-write, notification")
	f.BoolVar(&q.Held, "held", false, "only messages that are held because the clock is doubted")
	f.IntVar(&q.Limit, "limit", 50, "messages per page, 1 to 500")
	f.StringVar(&q.After, "after", "", "begin after this position, which the previous page gave")
	f.BoolVar(&all, "all", false, "follow the pages to the end")
	f.BoolVarP(&quiet, "quiet", "q", false, "print message ids only, oldest first")
	return cmd
}

// searchFlags adds the flags of what no index leads to.
func searchFlags(f *pflag.FlagSet, q *client.MessageQuery) {
	f.StringVar(&q.ID, "id", "", "only ids that contain this")
	f.StringVar(&q.Endpoint, "endpoint", "", "only this endpoint")
	f.StringVar(&q.Key, "key", "", "only this ordering key")
	f.StringVar(&q.Correlation, "correlation", "", "only this correlation id")
	f.StringVar(&q.Event, "event", "", "only deliveries of the event with this id")
	f.StringVar(&q.Topic, "topic", "", "only deliveries of events of this topic")
	f.StringVar(&q.Code, "code", "", "only those whose last error has this code")
	f.StringVar(&q.Error, "error", "", "only those whose last error contains all these words")
	f.StringVar(&q.Grep, "grep", "", "only those whose headers and first 64 KiB of payload contain all these words")
	f.IntVar(&q.Count, "count", 0, "say how many there are on all pages, counted up to so many")
	f.StringVar(&q.Cause, "cause", "", "only those of this cause, as messages causes names it")
}

// own returns the client of the node's own messages.
func own(c *client.Client) *client.Client { return c }

func (a *app) listMessages(cmd *cobra.Command, g *global, of func(*client.Client) *client.Client, q client.MessageQuery, all, quiet bool) error {
	var ids []string
	return pages(a, cmd, g, q.After, all, func(ctx context.Context, c *client.Client, after string) (api.MessagePage, string, error) {
		q.After = after
		page, err := of(c).Messages().List(ctx, q)
		return page, page.Next, err
	}, func(w io.Writer, page *api.MessagePage, last bool) error {
		if !quiet {
			err := listing(w, []string{"ID", "STATE", "DESTINATION", "ENDPOINT", "TRIES", "CREATED", "LAST ERROR"}, page.Messages, func(m *api.Message) []string {
				return []string{m.ID, m.State, m.Destination, m.Endpoint, fmt.Sprint(m.Tries), at(m.Created), strings.TrimSpace(m.Reason + " " + m.LastError)}
			})
			if n := page.Count; err == nil && n != nil {
				a.note("%d%s in all\n", n.Count, map[bool]string{true: " or more"}[n.More])
			}
			a.looked(err, page.LookedUntil, all)
			return err
		}
		for i := range page.Messages {
			ids = append(ids, page.Messages[i].ID)
		}
		return printIDs(w, ids, last)
	})
}

// looked says how far a page looked that is not full.
func (a *app) looked(err error, until time.Time, all bool) {
	if err == nil && !until.IsZero() && !all {
		a.note("looked at all until %s\n", at(until))
	}
}

// printIDs prints ids after the last page, in the reverse order of the pages, which list the newest first. So a
// decision about all of them follows the order in which they were accepted.
func printIDs(w io.Writer, ids []string, last bool) error {
	if !last {
		return nil
	}
	for _, id := range slices.Backward(ids) {
		if _, err := fmt.Fprintln(w, id); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	return nil
}
