package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin"
)

func (a *app) messagesCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{
		Use: "messages", Aliases: []string{"message", "msg"},
		Short: "List, show, retry and discard messages",
		Args:  cobra.ArbitraryArgs, RunE: group,
	}
	cmd.AddCommand(a.listCommand(g), a.showCommand(g), a.retryCommand(g), a.discardCommand(g))
	return cmd
}

func (a *app) listCommand(g *global) *cobra.Command {
	var q admin.MessageQuery
	var all, quiet bool
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"},
		Short: "List messages, newest first",
		Example: `  holdfast messages ls --state parked,expired
  holdfast messages ls --destination inventory --limit 500
  holdfast messages ls --category external-system --state parked
  holdfast messages ls --state parked --all -q | xargs holdfast messages retry`,
		Args: args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.listMessages(cmd, g, own, q, all, quiet) },
	}
	f := cmd.Flags()
	f.StringSliceVar(&q.States, "state", nil, "only these states: pending, claimed, delivered, parked, expired, discarded")
	f.StringVar(&q.Destination, "destination", "", "only this destination")
	f.StringVar(&q.Category, "category", "", "only destinations of this category, one after the other: external-system, cached-db-write, notification")
	f.IntVar(&q.Limit, "limit", 50, "messages per page, 1 to 500")
	f.StringVar(&q.After, "after", "", "begin after this place, which the page before named")
	f.BoolVar(&all, "all", false, "follow the pages to the end")
	f.BoolVarP(&quiet, "quiet", "q", false, "print message ids only")
	return cmd
}

// own is the client of the node's own messages; sites have others.
func own(c *admin.Client) *admin.Client { return c }

func (a *app) listMessages(cmd *cobra.Command, g *global, of func(*admin.Client) *admin.Client, q admin.MessageQuery, all, quiet bool) error {
	return eachPage(a, q.After, all, g.json, func(after string) (next string, err error) {
		q.After = after
		var page admin.MessagePage
		err = a.ask(cmd, g, func(ctx context.Context, c *admin.Client) (err error) {
			page, err = of(c).Messages(ctx, q)
			return err
		})
		switch {
		case err != nil:
		case g.json:
			err = printJSON(a.stdout, page)
		case quiet:
			err = printIDs(a.stdout, page.Messages)
		default:
			err = messageTable(a.stdout, page.Messages)
		}
		return page.Next, err
	})
}

func printIDs(w io.Writer, messages []admin.Message) error {
	for _, m := range messages {
		if _, err := fmt.Fprintln(w, m.ID); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	return nil
}

func messageTable(w io.Writer, messages []admin.Message) error {
	rows := make([][]string, len(messages))
	for i, m := range messages {
		rows[i] = []string{m.ID, m.State, m.Destination, m.Endpoint, fmt.Sprint(m.Tries), at(m.Created), strings.TrimSpace(m.Reason + " " + m.LastError)}
	}
	return table(w, []string{"ID", "STATE", "DESTINATION", "ENDPOINT", "TRIES", "CREATED", "LAST ERROR"}, rows)
}

func (a *app) retryCommand(g *global) *cobra.Command {
	var r admin.RetryRequest
	cmd := &cobra.Command{
		Use:   "retry ID...",
		Short: "Retry parked or expired messages",
		Long: `Retry parked or expired messages: failures count from zero, they are due at
once, and their TTL begins anew. Each id is tried; the exit code is that of the
first that failed.`,
		Example: `  holdfast messages retry 0190c5a2-7b1e-7c3d-9a4f-1d2e3f405162
  holdfast messages retry order-42 order-43 --ttl 7d`,
		Args: args(1, -1, "one or more message ids"),
		RunE: func(cmd *cobra.Command, ids []string) error {
			return a.decide(cmd, g, ids, func(ctx context.Context, c *admin.Client, id string) (admin.Message, error) {
				return c.Retry(ctx, id, r)
			})
		},
	}
	cmd.Flags().StringVar(&r.TTL, "ttl", "", "a new TTL: 90s, 24h, 7d; default: as long as the message had at first")
	cmd.Flags().BoolVar(&r.Force, "force", false, "send it even where the receiver may have forgotten the id, and might do it a second time")
	return cmd
}

func (a *app) discardCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "discard ID...",
		Short: "Give parked or expired messages up",
		Long: `Give parked or expired messages up. They are not deleted: their rows are kept
for their retention. Each id is tried; the exit code is that of the first that
failed.`,
		Example: `  holdfast messages discard order-42`,
		Args:    args(1, -1, "one or more message ids"),
		RunE: func(cmd *cobra.Command, ids []string) error {
			return a.decide(cmd, g, ids, func(ctx context.Context, c *admin.Client, id string) (admin.Message, error) {
				return c.Discard(ctx, id)
			})
		},
	}
}

// decide changes each message, and tells its state.
func (a *app) decide(cmd *cobra.Command, g *global, ids []string, change func(context.Context, *admin.Client, string) (admin.Message, error)) error {
	return a.each(cmd, g, ids, "a message id is empty", func(ctx context.Context, c *admin.Client, id string) error {
		m, err := change(ctx, c, id)
		switch {
		case err != nil:
			return err
		case g.json:
			return printJSON(a.stdout, m)
		}
		_, err = fmt.Fprintf(a.stdout, "%s is %s\n", m.ID, m.State)
		return err
	})
}

// each does the same with each id; one that is refused does not stop the
// others, a node that is gone does.
func (a *app) each(cmd *cobra.Command, g *global, ids []string, empty string, f func(context.Context, *admin.Client, string) error) error {
	var faults several
	for _, id := range ids {
		err := a.ask(cmd, g, func(ctx context.Context, c *admin.Client) error {
			if id == "" {
				return usage(errors.New(empty))
			}
			return f(ctx, c, id)
		})
		if err != nil {
			faults = append(faults, err)
		}
		if _, refused := errors.AsType[*admin.Problem](err); err != nil && !refused {
			break
		}
	}
	if len(faults) > 0 {
		return faults
	}
	return nil
}
