package httpapi

import (
	"context"
	"net/http"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// auditBySite adds the route of what each site's audit log amounts to.
func auditBySite(b *builder, log admin.Audit) {
	handle(b, route{
		method: http.MethodGet, path: "/v1/audit/kpis/sites", id: "audit-kpis-by-site", tag: "audit", right: api.AuditRead, scoped: true,
		summary: "Numbers of the audit log by site",
		description: "How much was recorded in the last hour, how much of it is an error, and what has not come to central yet: at central of each site, at a site of itself. " +
			"A node that is neither has none. A token for some sites sees these.",
	}, func(ctx context.Context, _ *struct{}) (*answer[api.AuditBySite], error) {
		return answerOf(log.BySite(ctx))
	})
}
