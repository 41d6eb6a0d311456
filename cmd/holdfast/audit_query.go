package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
)

// auditFilter holds the flags that narrow what is asked of the audit log.
type auditFilter struct {
	api.AuditFilter

	between between
}

func (f *auditFilter) flags(s *pflag.FlagSet) {
	f.between.flags(s, "what happened")
	s.StringVar(&f.Site, "site", "", "only of this site")
	s.StringVar(&f.Node, "node", "", "only of this node")
	s.StringVar(&f.Instance, "instance", "", "only of this instance of a program")
	s.StringVar(&f.Actor, "actor", "", "only what this person or token did; system: the node itself")
	s.StringVar(&f.Target, "target", "", "only what was done to this destination, list, message id or address")
	s.StringVar(&f.Channel, "channel", "", "only this way: ApiOutbound, DbOutbound, Notification, ApiInbound, Message, Webhook, Operator, System")
	s.StringVar(&f.Kind, "kind", "", "only this kind of event, such as NotifyDeliver")
	s.StringVar(&f.Status, "status", "", "only what ended like this, such as Parked")
	s.StringVar(&f.CorrelationID, "correlation", "", "only of this correlation id, or of the message with this id")
	s.BoolVar(&f.Errors, "errors", false, "only what counts as an error")
}

// read returns the filter that the flags say.
func (f *auditFilter) read() (api.AuditFilter, error) {
	from, until, err := f.between.read()
	if err != nil {
		return api.AuditFilter{}, err
	}
	f.From, f.To = exact(from), exact(until)
	return f.AuditFilter, nil
}

// exact writes an instant for the API; zero: nothing.
func exact(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

func (a *app) auditQueryCommand(g *global) *cobra.Command {
	var f auditFilter
	var q client.AuditQuery
	var all bool
	cmd := &cobra.Command{
		Use: "query", Aliases: []string{"ls"},
		Short: "List records of the audit log, newest first",
		Long: `List records of the audit log, newest first. A page takes a moment at most: where
no index leads to what is asked for, it has what was found until then, and says
how far it looked. The question itself is recorded.`,
		Example: `  holdfast audit query --actor anna --since 7d
  holdfast audit query --errors --site plant-7 --json
  holdfast audit query --target a.smit@example.org --all`,
		Args: args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if q.AuditFilter, err = f.read(); err != nil {
				return err
			}
			return a.queryAudit(cmd, g, q, all)
		},
	}
	f.flags(cmd.Flags())
	cmd.Flags().IntVar(&q.Limit, "limit", 50, "records per page, 1 to 500")
	cmd.Flags().StringVar(&q.After, "after", "", "begin after this position, which the previous page gave")
	cmd.Flags().BoolVar(&all, "all", false, "follow the pages to the end")
	return cmd
}

func (a *app) queryAudit(cmd *cobra.Command, g *global, q client.AuditQuery, all bool) error {
	return pages(a, cmd, g, q.After, all, func(ctx context.Context, c *client.Client, after string) (api.AuditPage, string, error) {
		q.After = after
		page, err := c.Audit().Query(ctx, q)
		return page, page.Next, err
	}, func(w io.Writer, page *api.AuditPage, _ bool) error {
		err := listing(w, []string{"OCCURRED", "CHANNEL", "KIND", "STATUS", "SITE", "ACTOR", "TARGET", "CORRELATION", "ERROR"}, page.Records, func(r *api.AuditRecord) []string {
			return []string{at(r.Occurred), r.Channel, r.Kind, r.Status, r.Site, r.Actor, r.Target, r.CorrelationID, r.Error}
		})
		a.looked(err, page.LookedUntil, all)
		return err
	})
}

func (a *app) auditShowCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use:     "show ID",
		Short:   "Show one record of the audit log",
		Example: `  holdfast audit show 5e4f9f6c-8d9e-8f0a-9b1c-0d2e3f405162`,
		Args:    args(1, 1, "one id of an event"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return a.ask(cmd, g, func(ctx context.Context, c *client.Client) error {
				r, err := c.Audit().Get(ctx, given[0])
				if err != nil {
					return err
				}
				return printJSON(a.stdout, r)
			})
		},
	}
}

func (a *app) auditKPIsCommand(g *global) *cobra.Command {
	var sites bool
	cmd := &cobra.Command{
		Use:   "kpis",
		Short: "Show numbers of the audit log, of the node or by site",
		Example: `  holdfast audit kpis
  holdfast audit kpis --sites`,
		Args: args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if sites {
				return a.auditBySite(cmd, g)
			}
			return show(a, cmd, g, func(ctx context.Context, c *client.Client) (api.AuditKPIs, error) {
				return c.Audit().KPIs(ctx)
			}, func(w io.Writer, k *api.AuditKPIs) error {
				_, err := fmt.Fprintf(w, "records   %d in the last %s\nerrors    %d (%.1f %%)\nbacklog   %.0f s\nfailures  %d\n",
					k.Records, k.Window, k.Errors, 100*k.ErrorRate, k.BacklogSeconds, k.WriteFailures)
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&sites, "sites", false, "for each site, with what has not come to central")
	return cmd
}

func (a *app) auditExportCommand(g *global) *cobra.Command {
	var f auditFilter
	var log, format, file string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write the audit log to a file, to keep it or to verify it elsewhere",
		Long: `Write all records that an audit log has at this moment, the oldest first, as JSON
Lines or CSV. The last line has the number of records and the last hash. JSON
Lines can be verified without the node; those of a filtered export only one by
one. The export is recorded before it begins.`,
		Example: `  holdfast audit export --out audit.jsonl
  holdfast audit export --format csv --since 30d --actor anna --out anna.csv`,
		Args: args(0, 0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if format != "jsonl" && format != "csv" {
				return usage(fmt.Errorf("--format %q: must be jsonl or csv", format))
			}
			filter, err := f.read()
			if err != nil {
				return err
			}
			c, err := a.client(cmd, g)
			if err != nil {
				return err
			}
			return a.writeExport(file, func(w io.Writer) error { // however long it takes
				return c.Audit().Export(cmd.Context(), filter, log, format, w)
			})
		},
	}
	f.flags(cmd.Flags())
	cmd.Flags().StringVar(&log, "log", "", "name of the log; empty: the node's own")
	cmd.Flags().StringVar(&format, "format", "jsonl", "jsonl or csv")
	cmd.Flags().StringVar(&file, "out", "-", `new file to write; "-" for standard output`)
	return cmd
}

// writeExport writes an export to a new file, which is removed if the export is not whole.
func (a *app) writeExport(file string, write func(w io.Writer) error) error {
	if file == "-" {
		return write(a.stdout)
	}
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the user names the file
	if errors.Is(err, os.ErrExist) {
		return usage(fmt.Errorf("--out: %s is there already", file))
	}
	if err != nil {
		return usage(fmt.Errorf("--out: %w", err))
	}
	err = write(out)
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}
