package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
)

func (n *notifications) show() *cobra.Command {
	var site string
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show a notification: text, channels, recipients, every attempt",
		Example: `  holdfast notifications show 0190c5a2-7b1e-7c3d-9a4f-1d2e3f405162
  holdfast notifications show alarm-42 --site plant-7`,
		Args: args(1, 1, "one notification id"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return show(n.app, cmd, n.global, func(ctx context.Context, c *client.Client) (api.NotificationDetail, error) {
				return c.Notifications().Get(ctx, site, given[0])
			}, printNotification)
		},
	}
	siteFlag(cmd, &site)
	return cmd
}

// siteFlag adds the flag that says which site's notification an id names.
func siteFlag(cmd *cobra.Command, site *string) {
	cmd.Flags().StringVar(site, "site", "", "the site that sent it; needed if several have sent the same id")
}

// sheet prints names with values. It leaves empty values out.
type sheet struct{ *tabwriter.Writer }

func newSheet(w io.Writer) sheet { return sheet{tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)} }

func (s sheet) line(name, value string) {
	if value != "" {
		_, _ = fmt.Fprintf(s, "%s\t%s\n", name, strings.Join(strings.Fields(plain(value)), " "))
	}
}

func (s sheet) when(name string, t *time.Time) {
	if t != nil {
		s.line(name, at(*t))
	}
}

// end reports the errors of earlier writes.
func (s sheet) end() error {
	if err := s.Flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

func printNotification(w io.Writer, d *api.NotificationDetail) error {
	s := newSheet(w)
	s.line("id", d.ID)
	s.line("status", d.Status)
	s.line("subject", d.Subject)
	s.line("list", d.List)
	s.line("type", d.Type)
	s.line("site", d.Site)
	s.line("instance", d.OriginInstance)
	s.line("script", d.SourceScript)
	s.line("execution", d.ExecutionID)
	s.line("parent execution", d.ParentExecutionID)
	s.line("trace", d.TraceID)
	s.when("enqueued", d.Enqueued)
	s.when("created", d.Created)
	s.when("delivered", d.Delivered)
	s.line("last error", d.LastError)
	if err := s.end(); err != nil {
		return err
	}
	for i := range d.Copies {
		if err := printCopy(w, &d.Copies[i]); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "\nbody\n%s\n", strings.TrimSuffix(plain(d.Body), "\n"))
	if err == nil && len(d.Data) > 0 {
		_, err = fmt.Fprintf(w, "\ndata\n%s\n", plain(string(d.Data)))
	}
	return err
}

func printCopy(w io.Writer, c *api.NotificationCopy) error {
	state := copyState(c.CopyStatus)
	if c.Partial {
		state += " (partial: some refused it for good)"
	}
	if _, err := fmt.Fprintf(w, "\nover %s: %s\n", orDash(c.Channel), plain(state)); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	s := newSheet(w)
	s.line("  message", c.Message)
	s.line("  waits for", c.WaitsFor)
	s.line("  attempts", fmt.Sprintf("%d, of which %d failed and count, in cycle %d", c.Tries, c.Failures, c.Cycle))
	s.when("  next attempt", c.NextAttempt)
	s.line("  last error", c.LastError)
	if err := s.end(); err != nil {
		return err
	}
	if len(c.Recipients) > 0 {
		if _, err := fmt.Fprintln(w); err != nil {
			return fmt.Errorf("print: %w", err)
		}
		if err := listing(w, []string{"RECIPIENT", "NAME", "RESULT", "ATTEMPTS", "AT", "DETAIL"}, c.Recipients, recipientRow); err != nil {
			return err
		}
	}
	return printHistory(w, c.History)
}

func recipientRow(r *api.RecipientStatus) []string {
	var detail []string
	for _, part := range []string{r.Code, r.Text} {
		if part != "" {
			detail = append(detail, part)
		}
	}
	if r.Maybe {
		detail = append(detail, "may have been delivered")
	}
	if r.Truncated {
		detail = append(detail, "text cut short")
	}
	if r.Receipt != "" {
		detail = append(detail, "receipt "+r.Receipt)
	}
	return []string{orDash(r.Address), r.Name, r.Result, fmt.Sprint(r.Attempts), optional(r.At), strings.Join(detail, ", ")}
}
