package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
)

func (e *events) resend() *cobra.Command {
	var req api.ResendRequest
	var source string
	cmd := &cobra.Command{
		Use:   "resend ID",
		Short: "Send an event again to those that it was for",
		Long: `Send an event again. Each subscription gets a new message under the webhook-id of the
first one, which stays as it is.`,
		Example: `  holdfast events resend 0190c5a2-7b1e-7c3d-9a4f-1d2e3f405162
  holdfast events resend 0190c5a2-7b1e-7c3d-9a4f-1d2e3f405162 --subscription shop --match-now`,
		Args: args(1, 1, "the event's id"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return show(e.app, cmd, e.global, func(ctx context.Context, c *client.Client) (api.Resent, error) {
				return c.Events().Resend(ctx, source, given[0], req)
			}, func(w io.Writer, r *api.Resent) error {
				return listing(w, []string{"SUBSCRIPTION", "MESSAGE"}, r.Messages, func(m *api.ResentMessage) []string { return []string{m.Subscription, m.Message} })
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&req.Subscription, "subscription", "", "only to this subscription")
	f.BoolVar(&req.MatchNow, "match-now", false, "to those that it is for now, in place of those that it was for when it came")
	f.StringVar(&req.ID, "id", "", "id of the resend, to ask again when an answer was lost; default: the node mints one")
	f.StringVar(&source, "source", "", "who it is from, if several have sent this id")
	return cmd
}
