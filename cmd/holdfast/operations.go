package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
)

func (a *app) operationsCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{
		Use: "operations", Aliases: []string{"operation"},
		Short: "Show what became of calls of other systems and of writes to their databases",
		Args:  cobra.ArbitraryArgs, RunE: group,
	}
	cmd.AddCommand(a.listOperations(g), a.showOperation(g))
	return cmd
}

func (a *app) listOperations(g *global) *cobra.Command {
	var q client.OperationQuery
	var when between
	var all bool
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"},
		Short: "List operations, newest first",
		Long: `List operations, newest first. A page looks at a bounded number of rows: it may be short
or empty and still have a next one. --all follows the pages to the end.`,
		Example: `  holdfast operations ls --status parked,failed
  holdfast operations ls --destination erp --since 24h --error 'no such plant'
  holdfast operations ls --execution 'run 1' --all`,
		Args: args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if q.From, q.To, err = when.read(); err != nil {
				return err
			}
			return pages(a, cmd, g, q.After, all, func(ctx context.Context, c *client.Client, after string) (api.OperationPage, string, error) {
				q.After = after
				page, err := c.Operations().List(ctx, q)
				return page, page.Next, err
			}, func(w io.Writer, page *api.OperationPage, _ bool) error {
				return listing(w, []string{"ID", "STATUS", "DESTINATION", "ENDPOINT", "RETRIES", "CREATED", "LAST ERROR"}, page.Operations, func(o *api.Operation) []string {
					return []string{o.ID, o.Status, o.Destination, o.Endpoint, fmt.Sprint(o.Retries), at(o.Created), o.LastError}
				})
			})
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&q.Statuses, "status", nil, "only these: submitted, retrying, delivered, failed, parked, expired, discarded")
	f.StringVar(&q.Destination, "destination", "", "only this destination")
	f.StringVar(&q.Category, "category", "", "only this category: external-system, cached-db-write")
	f.StringVar(&q.Instance, "instance", "", "only of this instance")
	f.StringVar(&q.Script, "script", "", "only of this script")
	f.StringVar(&q.Execution, "execution", "", "only of this run, and of the runs that it started")
	f.StringVar(&q.Trace, "trace", "", "only of the trace with this id")
	f.StringVar(&q.Error, "error", "", "only with this text in the last error, in any case")
	when.flags(f, "those submitted")
	f.IntVar(&q.Limit, "limit", 50, "operations per page, 1 to 500")
	f.StringVar(&q.After, "after", "", "begin after this position, which the previous page gave")
	f.BoolVar(&all, "all", false, "follow the pages to the end")
	return cmd
}

func (a *app) showOperation(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show what became of an operation",
		Long: `Show what became of an operation. The node answers from its own store, also while central is
away, and for some time after the message of the operation is purged.`,
		Example: `  holdfast operations show 0190c5a2-7b1e-7c3d-9a4f-1d2e3f405162`,
		Args:    args(1, 1, "one operation id"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return show(a, cmd, g, func(ctx context.Context, c *client.Client) (api.Operation, error) {
				return c.Operations().Get(ctx, given[0])
			}, printOperation)
		},
	}
}

func printOperation(w io.Writer, o *api.Operation) error {
	s := newSheet(w)
	status, code := o.Status, ""
	if o.Purged {
		status += " (its message is purged)"
	}
	if o.HTTPStatus != 0 {
		code = fmt.Sprint(o.HTTPStatus)
	}
	s.line("id", o.ID)
	s.line("status", status)
	s.line("to", o.Destination+" / "+o.Endpoint)
	s.line("category", o.Category)
	s.line("site", o.Site)
	s.line("node", o.Node)
	s.line("instance", o.OriginInstance)
	s.line("script", o.SourceScript)
	s.line("execution", o.ExecutionID)
	s.line("parent execution", o.ParentExecutionID)
	s.line("trace", o.TraceID)
	s.line("retries", fmt.Sprintf("%d; %d attempts failed and count", o.Retries, o.Failures))
	s.line("its own retries", ownRetries(&o.OwnRetry))
	s.line("last error", o.LastError)
	s.line("HTTP status", code)
	s.line("created", at(o.Created))
	s.when("last attempt", o.LastAttempt)
	s.when("ended", o.Ended)
	return s.end()
}
