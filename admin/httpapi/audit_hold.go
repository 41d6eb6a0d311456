package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
)

type holdInput struct {
	Name string `path:"name" doc:"The name of the hold."`
	WithBody
}

// keeping adds the routes of what stays in the audit log, and what goes.
func keeping(b *builder) {
	log := admin.Audit{Service: b.Service}
	handle(b, route{
		method: http.MethodGet, path: "/v1/audit/holds", id: "list-audit-holds", tag: "audit", right: api.AuditRead,
		summary: "List the holds of the audit log", description: "By name.",
	}, func(ctx context.Context, _ *struct{}) (*answer[api.AuditHolds], error) {
		return answerOf(log.Holds(ctx))
	})
	asked(b, route{
		method: http.MethodPost, path: "/v1/audit/holds", id: "hold-audit", tag: "audit", right: api.AuditKeep, slow: true,
		summary: "Keep records of the audit log",
		description: "Keeps the records that a filter selects, and all later ones of the same log, from being purged: what is there, and what comes. The log has a record of it. " +
			"The same hold made again is the same hold.",
		problems:     map[api.Sort]string{api.Conflict: "The name is taken by another hold.", api.Unsupported: "The node keeps no audit log.", api.DiskFull: "The disk is full; nothing was changed."},
		bodyRequired: true, requestSample: json.RawMessage(`{"name":"case-2026-17","filter":{"site":"plant-7","from":"2026-11-01"},"reason":"inquiry of the inspectorate"}`),
	}, func(ctx context.Context, _ *WithBody, req *api.NewAuditHold, wrong []api.Fault) (*answer[api.AuditHold], error) {
		return answerOf(log.Hold(ctx, req, wrong...))
	})
	asked(b, route{
		method: http.MethodPost, path: "/v1/audit/holds/{name}/release", id: "release-audit-hold", tag: "audit", right: api.AuditKeep,
		summary: "Release a hold of the audit log", description: "The next purge takes what is old and no other hold keeps. The log has a record of it.",
		problems:     map[api.Sort]string{api.NotFound: "There is no such hold.", api.Unsupported: "The node keeps no audit log.", api.DiskFull: "The disk is full; nothing was changed."},
		bodyRequired: true, requestSample: json.RawMessage(`{"reason":"the inquiry has ended"}`),
	}, func(ctx context.Context, in *holdInput, req *api.AuditRelease, wrong []api.Fault) (*struct{}, error) {
		return nil, log.Release(ctx, in.Name, req, wrong...)
	})
}
