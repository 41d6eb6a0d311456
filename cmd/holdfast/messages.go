package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
)

func (a *app) messagesCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{
		Use: "messages", Aliases: []string{"message", "msg"},
		Short: "List and show messages, and decide about them: retry, discard, run now, reschedule",
		Args:  cobra.ArbitraryArgs, RunE: group,
	}
	cmd.AddCommand(a.listCommand(g), a.showCommand(g))
	cmd.AddCommand(a.decisions(g, "messages", nil)...)
	return cmd
}

func (a *app) listCommand(g *global) *cobra.Command {
	var q client.MessageQuery
	var all, quiet bool
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"},
		Short: "List messages, newest first",
		Example: `  holdfast messages ls --state parked,expired
  holdfast messages ls --destination inventory --limit 500
  holdfast messages ls --category external-system --state parked
  holdfast messages ls --held
  holdfast messages ls --state parked --all -q | xargs holdfast messages retry`,
		Args: args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.listMessages(cmd, g, own, q, all, quiet) },
	}
	f := cmd.Flags()
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
			return listing(w, []string{"ID", "STATE", "DESTINATION", "ENDPOINT", "TRIES", "CREATED", "LAST ERROR"}, page.Messages, func(m *api.Message) []string {
				return []string{m.ID, m.State, m.Destination, m.Endpoint, fmt.Sprint(m.Tries), at(m.Created), strings.TrimSpace(m.Reason + " " + m.LastError)}
			})
		}
		for i := range page.Messages {
			ids = append(ids, page.Messages[i].ID)
		}
		return printIDs(w, ids, last)
	})
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
