package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
)

func (a *app) inboxCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "inbox",
		Short: "List received messages that wait, mark them done",
		Args:  cobra.ArbitraryArgs, RunE: group,
	}
	cmd.AddCommand(a.inboxListCommand(g), a.doneCommand(g))
	return cmd
}

func (a *app) inboxListCommand(g *global) *cobra.Command {
	var q client.InboxQuery
	var all bool
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"},
		Short: "List received messages that wait, oldest first",
		Long: `List received messages of endpoints that keep them, oldest first, until they
are marked done. With --json each has its payload.`,
		Example: `  holdfast inbox ls --endpoint ReserveStock
  holdfast inbox ls --all --json`,
		Args: args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.listInbox(cmd, g, q, all) },
	}
	f := cmd.Flags()
	f.StringVar(&q.Endpoint, "endpoint", "", "only this endpoint")
	f.IntVar(&q.Limit, "limit", 50, "messages per page, 1 to 500")
	f.Int64Var(&q.After, "after", 0, "begin after this position, which the previous page gave")
	f.BoolVar(&all, "all", false, "follow the pages to the end")
	return cmd
}

func (a *app) listInbox(cmd *cobra.Command, g *global, q client.InboxQuery, all bool) error {
	return pages(a, cmd, g, q.After, all, func(ctx context.Context, c *client.Client, after int64) (api.KeptPage, int64, error) {
		q.After = after
		page, err := c.Inbox().List(ctx, q)
		return page, page.Next, err
	}, func(w io.Writer, page *api.KeptPage, _ bool) error {
		return listing(w, []string{"ID", "SOURCE", "ENDPOINT", "KIND", "RECEIVED", "PAYLOAD"}, page.Messages, func(m *api.KeptMessage) []string {
			payload := string(m.Payload)
			if m.PayloadBase64 != "" {
				payload = "base64: " + m.PayloadBase64
			}
			return []string{m.ID, m.Source, m.Endpoint, m.Kind, at(m.Received), payload}
		})
	})
}

func (a *app) doneCommand(g *global) *cobra.Command {
	var source, response, file string
	cmd := &cobra.Command{
		Use:   "done ID",
		Short: "Mark a received message done",
		Long: `Mark a received message done. It leaves the list; its id is remembered, so that
a repeat of it is answered with the response. Doing it again with the same
response is not an error.`,
		Example: `  holdfast inbox done order-42
  holdfast inbox done order-42 --source engine --response '{"reserved":true}'
  holdfast inbox done order-42 --response-file - <answer.json`,
		Args: args(1, 1, "one message id"),
		RunE: func(cmd *cobra.Command, given []string) error {
			req := api.DoneRequest{Source: source}
			if response != "" && file != "" {
				return usage(errors.New("--response and --response-file exclude each other; keep one"))
			}
			text, from := []byte(response), "--response"
			if file != "" {
				var err error
				if text, err = a.readInput(file); err != nil {
					return err
				}
				from = file
			}
			if response != "" || file != "" {
				var err error
				if req.Response, err = rawJSON(from, text); err != nil {
					return err
				}
			}
			return a.done(cmd, g, given[0], req)
		},
	}
	f := cmd.Flags()
	f.StringVar(&source, "source", "", "who sent the message; needed if several sent the same id")
	f.StringVar(&response, "response", "", "the answer to a repeat of the message, as JSON")
	f.StringVar(&file, "response-file", "", `file that holds the response; "-" for standard input`)
	return cmd
}

func (a *app) done(cmd *cobra.Command, g *global, id string, req api.DoneRequest) error {
	return show(a, cmd, g, func(ctx context.Context, c *client.Client) (api.Done, error) {
		return c.Inbox().Done(ctx, id, req)
	}, func(w io.Writer, d *api.Done) error {
		_, err := fmt.Fprintf(w, "%s of %s is done\n", d.ID, plain(d.Source))
		return err
	})
}
