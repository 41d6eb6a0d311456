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
		method: http.MethodPost, path: "/v1/audit/erasures", id: "erase-audit", tag: "audit", right: api.AuditKeep, slow: true, bodyLimit: 256 << 10,
		summary: "Erase values of the audit log",
		description: "Deletes personal values that stand beside records: of the node's own log, and at a central of the copies of its sites' logs. Records, hashes and checkpoints stay. " +
			"The log has a record of the numbers, with who and why. What a hold keeps stays, unless despiteHold is set. Asked again, it goes on where it was cut off.",
		problems: map[api.Sort]string{
			api.NotFound: "No such record is kept.", api.WrongState: "A hold was made meanwhile; what went before is on record.",
			api.Unsupported: "The node keeps no audit log.", api.DiskFull: "The disk is full.",
		},
		bodyRequired: true, requestSample: json.RawMessage(`{"person":"a.smit@example.org","reason":"request 4711","dryRun":true}`),
	}, func(ctx context.Context, _ *WithBody, req *api.AuditErasure, wrong []api.Fault) (*answer[api.AuditErased], error) {
		return answerOf(log.Erase(ctx, req, wrong...))
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
