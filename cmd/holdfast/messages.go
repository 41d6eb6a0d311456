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
	return eachPage(a, q.After, all, g.json, func(after string) (next string, err error) {
		q.After = after
		var page api.MessagePage
		err = a.ask(cmd, g, func(ctx context.Context, c *client.Client) (err error) {
			page, err = of(c).Messages().List(ctx, q)
			return err
		})
		switch {
		case err != nil:
		case g.json:
			err = printJSON(a.stdout, page)
		case quiet:
			for _, m := range page.Messages {
				ids = append(ids, m.ID)
			}
			if !all || page.Next == "" {
				err = printIDs(a.stdout, ids)
			}
		default:
			err = messageTable(a.stdout, page.Messages)
		}
		return page.Next, err
	})
}

// printIDs prints ids in the reverse order of the pages, which list the newest first. So a decision
// about all of them follows the order in which they were accepted.
func printIDs(w io.Writer, ids []string) error {
	for _, id := range slices.Backward(ids) {
		if _, err := fmt.Fprintln(w, id); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	return nil
}

func messageTable(w io.Writer, messages []api.Message) error {
	rows := make([][]string, len(messages))
	for i, m := range messages {
		rows[i] = []string{m.ID, m.State, m.Destination, m.Endpoint, fmt.Sprint(m.Tries), at(m.Created), strings.TrimSpace(m.Reason + " " + m.LastError)}
	}
	return table(w, []string{"ID", "STATE", "DESTINATION", "ENDPOINT", "TRIES", "CREATED", "LAST ERROR"}, rows)
}
