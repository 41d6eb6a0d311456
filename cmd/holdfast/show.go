package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
)

func (a *app) showCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use:     "show ID",
		Short:   "Show a message: payload, history, and why it has not been sent yet",
		Example: `  holdfast messages show 0190c5a2-7b1e-7c3d-9a4f-1d2e3f405162`,
		Args:    args(1, 1, "one message id"),
		RunE:    func(cmd *cobra.Command, given []string) error { return a.showMessage(cmd, g, own, given[0]) },
	}
}

func (a *app) showMessage(cmd *cobra.Command, g *global, of func(*client.Client) *client.Client, id string) error {
	return show(a, cmd, g, func(ctx context.Context, c *client.Client) (api.MessageDetail, error) {
		return of(c).Messages().Get(ctx, id)
	}, printMessage)
}

func printMessage(w io.Writer, m *api.MessageDetail) error {
	s := newSheet(w)
	state := m.State
	if m.Reason != "" {
		state += " (" + m.Reason + ")"
	}
	s.line("id", m.ID)
	s.line("state", state)
	s.line("waits for", m.WaitsFor)
	s.line("from", m.Source)
	s.line("to", m.Destination+" / "+m.Endpoint)
	s.line("category", m.Category)
	s.line("instance", m.OriginInstance)
	s.line("script", m.SourceScript)
	s.line("execution", m.ExecutionID)
	s.line("parent execution", m.ParentExecutionID)
	s.line("trace", m.TraceID)
	s.line("kind", m.Kind)
	s.line("correlation id", m.CorrelationID)
	s.line("ordering key", m.OrderingKey)
	s.line("attempts", fmt.Sprintf("%d, of which %d failed and count, in cycle %d", m.Tries, m.Failures, m.Cycle))
	s.line("its own retries", ownRetries(&m.OwnRetry))
	s.line("created", at(m.Created))
	s.when("due", m.Due)
	s.when("expires", m.Expires)
	s.when("last attempt", m.LastAttempt)
	s.line("last error", m.LastError)
	s.when("settled", m.Settled)
	for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
		s.line("header", name+": "+m.Headers[name])
	}
	if err := s.end(); err != nil {
		return err
	}
	if err := printSituation(w, m.Situation); err != nil {
		return err
	}
	if err := printHistory(w, m.History); err != nil {
		return err
	}
	payload := plain(string(m.Payload))
	if m.PayloadBase64 != "" {
		payload = "base64: " + m.PayloadBase64
	}
	_, err := fmt.Fprintf(w, "\npayload (%d bytes)\n%s\n", m.Size, payload)
	return err
}

// ownRetries describes the retries that a message asks for instead of its destination's.
func ownRetries(m *api.OwnRetry) string {
	var parts []string
	if n := m.MaxRetries; n != nil {
		switch {
		case *n < 0:
			parts = append(parts, "none")
		case *n == 0:
			parts = append(parts, "without limit")
		default:
			parts = append(parts, fmt.Sprintf("%d at most", *n))
		}
	}
	if m.RetryInterval != "" {
		parts = append(parts, "every "+m.RetryInterval)
	}
	return strings.Join(parts, ", ")
}

// printHistory prints the attempts and decisions of a message; nothing if there are none.
func printHistory(w io.Writer, history []api.Event) error {
	if len(history) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return listing(w, []string{"AT", "EVENT", "STATE", "CYCLE", "ATTEMPT", "TOOK", "DETAIL"}, history, historyRow)
}

func historyRow(e *api.Event) []string {
	attempt, took := "", ""
	if e.Attempt > 0 {
		attempt, took = fmt.Sprint(e.Attempt), fmt.Sprintf("%gms", e.TookMs)
	}
	var detail []string
	for _, part := range []string{e.Outcome, e.Reason, e.Code, e.Error} {
		if part != "" && !slices.Contains(detail, part) {
			detail = append(detail, part)
		}
	}
	if e.MaybeReceived {
		detail = append(detail, "may have been received")
	}
	if e.Actor != "" {
		detail = append(detail, "by "+e.Actor)
	}
	return []string{at(e.At), e.Event, e.State, fmt.Sprint(e.Cycle), attempt, took, strings.Join(detail, ", ")}
}

// printSituation says why a message is where it is, and what can be done.
func printSituation(w io.Writer, s *api.Situation) error {
	if s == nil {
		return nil
	}
	var text strings.Builder
	fmt.Fprintf(&text, "\nwhy it is here\n  %s\n  %s\n", plain(s.Because), plain(s.Next))
	for _, a := range s.Actions {
		text.WriteString("  - " + plain(a.Text))
		if a.Command != "" {
			text.WriteString("  " + plain(a.Command))
		}
		if !a.Allowed {
			text.WriteString("  (" + plain(a.Why) + ")")
		}
		text.WriteString("\n")
	}
	if _, err := io.WriteString(w, text.String()); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}
