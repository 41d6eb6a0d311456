package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
)

// auditBySite prints numbers of the audit log for each site.
func (a *app) auditBySite(cmd *cobra.Command, g *global) error {
	return show(a, cmd, g, func(ctx context.Context, c *client.Client) (api.AuditBySite, error) {
		return c.Audit().BySite(ctx)
	}, func(w io.Writer, k *api.AuditBySite) error {
		head := []string{"SITE", "RECORDS (" + k.Window + ")", "ERRORS", "RATE", "NOT SENT", "FOR", "PROBLEM"}
		return listing(w, head, k.Sites, func(s *api.SiteAuditKPIs) []string {
			return []string{s.Site, fmt.Sprint(s.Records), fmt.Sprint(s.Errors), fmt.Sprintf("%.1f %%", 100*s.ErrorRate), fmt.Sprint(s.Unsent), lasting(int64(1000 * s.UnsentSeconds)), s.Problem}
		})
	})
}
